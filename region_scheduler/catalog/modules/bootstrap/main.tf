# Stand-in for the first thing in a cloud: a store for terraform states and who may write to it.
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
  id      = "bootstrap-${substr(sha256(local.place), 0, 12)}"
  parents = { for name, outputs in var.upstream : name => outputs.id if can(outputs.id) }
  writers = [for name, outputs in var.upstream : outputs.subject if can(outputs.subject)]
}

resource "terraform_data" "store" {
  input = {
    id         = local.id
    bucket     = "${var.inputs.tenant}-${var.inputs.zone}-${var.inputs.region}-state"
    is_locking = true
    versions   = 30
  }
}

resource "terraform_data" "access" {
  input = {
    bucket  = terraform_data.store.output.bucket
    writers = local.writers
    after   = local.parents
  }
  triggers_replace = [terraform_data.store.output.id]
}

output "id" {
  value = terraform_data.store.output.id
}

output "kind" {
  value = "bootstrap"
}

output "bucket" {
  value = terraform_data.access.output.bucket
}
