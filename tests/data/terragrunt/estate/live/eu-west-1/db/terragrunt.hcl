include {
  path = find_in_parent_folders("root.hcl")
}

locals {
  above = ["../vpc", "../keys"]
  vpc   = find_in_parent_folders("vpc")
}

# The same in both, as people write it.
dependencies {
  paths = local.above
}

dependency "vpc" {
  config_path = local.vpc
}
