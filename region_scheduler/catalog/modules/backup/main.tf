# Stand-in for vaults that backups go to, and the plans that fill them.
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
  id      = "backup-${substr(sha256(local.place), 0, 12)}"
  parents = { for name, outputs in var.upstream : name => outputs.id if can(outputs.id) }
  keys    = [for name, outputs in var.upstream : outputs.id if try(outputs.kind, "") == "keys"]
}

resource "terraform_data" "vault" {
  input = {
    id          = local.id
    keys        = local.keys
    kept_months = var.inputs.parameters.evidence_months
  }
}

resource "terraform_data" "plan" {
  for_each = local.parents

  input = {
    vault = terraform_data.vault.output.id
    saves = each.value
  }
  triggers_replace = [each.value, local.keys]
}

output "id" {
  value = terraform_data.vault.output.id
}

output "kind" {
  value = "backup"
}

output "saves" {
  value = [for name, plan in terraform_data.plan : plan.output.saves]
}
