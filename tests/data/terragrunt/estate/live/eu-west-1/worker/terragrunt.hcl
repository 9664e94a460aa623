include "app" {
  path           = find_in_parent_folders("common/app.hcl")
  merge_strategy = "deep"
}

dependency "network" {
  skip_outputs = true
}

dependency "names" {
  config_path = "../../global/names/../dns"
}
