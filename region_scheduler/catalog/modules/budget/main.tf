# Stand-in for budgets, cost alerts and the tags that costs are told apart by.
# Builtin resources only: it applies offline and touches no cloud. It keeps the shape of the real
# module: what it reads from the steps before it, and what it gives to those after it.

terraform {
  required_version = ">= 1.4"
}

variable "step" {
  type        = string
  description = "Catalogue step that this is applied for."
}

variable "inputs" {
  type        = any
  description = "Facts of the zone: tenant, zone, region, regions, parameters, controls."
}

variable "upstream" {
  type        = any
  default     = {}
  description = "Outputs of the direct predecessors, by task name."
}

locals {
  place   = "${var.inputs.tenant}/${var.inputs.zone}/${var.step}@${var.inputs.region}"
  id      = "budget-${substr(sha256(local.place), 0, 12)}"
  parents = { for name, outputs in var.upstream : name => outputs.id if can(outputs.id) }
}

resource "terraform_data" "budget" {
  input = {
    id      = local.id
    tells   = var.inputs.parameters.contact
    percent = [50, 80, 100]
  }
}

resource "terraform_data" "tags" {
  for_each = local.parents

  input = {
    subject     = each.value
    cost_centre = var.inputs.parameters.cost_centre
    environment = var.inputs.parameters.environment
    budget      = terraform_data.budget.output.id
  }
  triggers_replace = [each.value]
}

output "id" {
  value = terraform_data.budget.output.id
}

output "kind" {
  value = "budget"
}

output "subjects" {
  value = [for name, tags in terraform_data.tags : tags.output.subject]
}
