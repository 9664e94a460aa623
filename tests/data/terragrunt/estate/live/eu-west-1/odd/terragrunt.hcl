include "lost" {
  path = find_in_parent_folders("lost.hcl")
}

locals {
  round = local.about
  about = local.round
}

dependency "values" {
  config_path = values.vpc_path
}

dependency "tried" {
  config_path = try(local.path, "../vpc")
}

dependency "each" {
  config_path = "../${each.key}"
}

dependency "environment" {
  config_path = get_env("VPC_PATH", "../vpc")
}

dependency "chosen" {
  config_path = local.is_main ? "../vpc" : "../db"
}

dependency "round" {
  config_path = local.round
}

dependency "maybe" {
  enabled     = values.is_wanted
  config_path = "../vpc"
}

dependency "pathless" {
}

dependencies {
  paths = [dependency.values.outputs.path, "../keys"]
}
