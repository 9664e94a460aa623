locals {
  network = "${get_terragrunt_dir()}/../vpc"
}

dependency "network" {
  config_path = local.network
}

dependency "names" {
  config_path = "${get_repo_root()}/live/global/names"
  mock_outputs = {
    zone = "example" /* not a real } zone */
  }
}

dependencies {
  paths = ["../keys"]
}
