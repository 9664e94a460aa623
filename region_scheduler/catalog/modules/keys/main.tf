# Stand-in for keys and vaults.
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
  id      = "keys-${substr(sha256(local.place), 0, 12)}"
  parents = { for name, outputs in var.upstream : name => outputs.id if can(outputs.id) }
}

resource "terraform_data" "key" {
  input = {
    id            = local.id
    alias         = "${var.inputs.tenant}/${var.inputs.zone}/${var.inputs.region}"
    rotation_days = 365
  }
}

resource "terraform_data" "grant" {
  for_each = local.parents

  input = {
    key    = terraform_data.key.output.id
    holder = each.value
  }
  triggers_replace = [each.value]
}

output "id" {
  value = terraform_data.key.output.id
}

output "kind" {
  value = "keys"
}

output "alias" {
  value = terraform_data.key.output.alias
}

output "holders" {
  value = [for name, grant in terraform_data.grant : grant.output.holder]
}
