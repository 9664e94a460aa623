# Stand-in for an account, subscription or project and what every new one gets.
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
  id      = "account-${substr(sha256(local.place), 0, 12)}"
  parents = { for name, outputs in var.upstream : name => outputs.id if can(outputs.id) }
  tree    = [for name, outputs in var.upstream : outputs.id if try(outputs.kind, "") == "hierarchy"]
}

resource "terraform_data" "account" {
  input = {
    id          = local.id
    parent      = length(local.tree) > 0 ? local.tree[0] : var.inputs.parameters.organisation
    environment = var.inputs.parameters.environment
    contact     = var.inputs.parameters.contact
  }
}

resource "terraform_data" "baseline" {
  input = {
    account     = terraform_data.account.output.id
    cost_centre = var.inputs.parameters.cost_centre
    after       = local.parents
  }
  triggers_replace = [terraform_data.account.output.parent]
}

output "id" {
  value = terraform_data.account.output.id
}

output "kind" {
  value = "account"
}

output "baseline" {
  value = sha256(jsonencode(terraform_data.baseline.output))
}
