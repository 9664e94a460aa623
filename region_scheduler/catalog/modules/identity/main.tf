# Stand-in for who may do what: groups, roles, assignments, federated principals.
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
  id      = "identity-${substr(sha256(local.place), 0, 12)}"
  parents = { for name, outputs in var.upstream : name => outputs.id if can(outputs.id) }
}

resource "terraform_data" "role" {
  input = {
    id           = local.id
    organisation = var.inputs.parameters.organisation
    session_s    = 3600
  }
}

resource "terraform_data" "assignment" {
  for_each = local.parents

  input = {
    role   = terraform_data.role.output.id
    target = each.value
  }
  triggers_replace = [each.value]
}

output "id" {
  value = terraform_data.role.output.id
}

output "kind" {
  value = "identity"
}

output "principal" {
  value = "${terraform_data.role.output.organisation}:${terraform_data.role.output.id}"
}

output "targets" {
  value = [for name, assignment in terraform_data.assignment : assignment.output.target]
}
