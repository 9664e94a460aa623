# Stand-in for services that look for trouble, and where they tell of it.
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
  id      = "detection-${substr(sha256(local.place), 0, 12)}"
  parents = { for name, outputs in var.upstream : name => outputs.id if can(outputs.id) }
  records = [for name, outputs in var.upstream : outputs.destination if can(outputs.destination)]
}

resource "terraform_data" "detector" {
  input = {
    id      = local.id
    reads   = local.records
    tells   = var.inputs.parameters.contact
    regions = var.inputs.regions
  }
}

resource "terraform_data" "subscription" {
  for_each = local.parents

  input = {
    detector = terraform_data.detector.output.id
    subject  = each.value
  }
  triggers_replace = [each.value]
}

output "id" {
  value = terraform_data.detector.output.id
}

output "kind" {
  value = "detection"
}

output "subjects" {
  value = [for name, subscription in terraform_data.subscription : subscription.output.subject]
}
