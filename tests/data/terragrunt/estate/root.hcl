locals {
  region_file = read_terragrunt_config(find_in_parent_folders("region.hcl", "none.hcl"), {
    locals = { name = "nowhere" } # where no region file is above
  })
  region = local.region_file.locals.name
}

remote_state {
  backend = "local"
  config = {
    path = "${path_relative_to_include()}/terraform.tfstate"
  }
}
