# Stand-in for the tree that accounts hang in: organisational units, management groups, folders.
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
  id      = "hierarchy-${substr(sha256(local.place), 0, 12)}"
  parents = { for name, outputs in var.upstream : name => outputs.id if can(outputs.id) }
  above   = [for name, outputs in var.upstream : outputs.id if try(outputs.kind, "") == "hierarchy"]
}

resource "terraform_data" "tree" {
  input = {
    id     = local.id
    parent = length(local.above) > 0 ? local.above[0] : var.inputs.parameters.organisation
    units  = ["security", "infrastructure", "workloads", "sandbox", "suspended"]
  }
}

resource "terraform_data" "unit" {
  for_each = toset(["security", "infrastructure", "workloads", "sandbox", "suspended"])

  input = {
    id    = "${local.id}-${each.key}"
    tree  = terraform_data.tree.output.id
    after = local.parents
  }
  triggers_replace = [terraform_data.tree.output.parent]
}

output "id" {
  value = terraform_data.tree.output.id
}

output "kind" {
  value = "hierarchy"
}

output "units" {
  value = { for name, unit in terraform_data.unit : name => unit.output.id }
}
