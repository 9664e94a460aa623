include "root" {
  path   = find_in_parent_folders("root.hcl")
  expose = true
}

terraform {
  source = "git::ssh://example/modules//vpc?ref=v1"
}

locals {
  accounts = { "main" = "live/global", other = "live/other" }
}

dependency "names" {
  config_path = "${get_path_to_repo_root()}/${local.accounts["main"]}/names"
}
