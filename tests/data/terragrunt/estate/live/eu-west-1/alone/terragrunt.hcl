include "app" {
  path           = find_in_parent_folders("common/app.hcl")
  merge_strategy = "no_merge"
}
