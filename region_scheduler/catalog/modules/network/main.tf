# Stand-in for networks and what joins them: hubs, spokes, firewalls, gateways, name resolution.
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
  id      = "network-${substr(sha256(local.place), 0, 12)}"
  parents = { for name, outputs in var.upstream : name => outputs.id if can(outputs.id) }
  blocks  = [for name, outputs in var.upstream : outputs.blocks if can(outputs.blocks)]
  handed  = [for name, outputs in var.upstream : outputs.cidr if try(outputs.kind, "") == "network"]
  whole   = var.inputs.parameters.cidr
  cidr    = try(local.blocks[0][var.inputs.region], local.handed[0], local.whole)
}

resource "terraform_data" "network" {
  input = {
    id     = local.id
    cidr   = local.cidr
    blocks = try(local.blocks[0], {})
  }
}

resource "terraform_data" "attachment" {
  for_each = local.parents

  input = {
    network = terraform_data.network.output.id
    to      = each.value
  }
  triggers_replace = [each.value, terraform_data.network.output.cidr]
}

output "id" {
  value = terraform_data.network.output.id
}

output "kind" {
  value = "network"
}

output "cidr" {
  value = terraform_data.network.output.cidr
}

output "blocks" {
  value = terraform_data.network.output.blocks
}

output "attached_to" {
  value = [for name, attachment in terraform_data.attachment : attachment.output.to]
}
