include "root" {
  path = find_in_parent_folders("root.hcl")
}

include "app" {
  path   = "${get_repo_root()}/common/app.hcl"
  expose = true
}

dependency "names" { # overrides the included one: none
  config_path = ""
}

dependency "cache" {
  config_path = "../cache"
  enabled     = false
}

dependency "db" {
  config_path = "${dirname(include.app.locals.network)}/db/terragrunt.hcl"
  enabled     = true
}
