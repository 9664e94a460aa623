dependency "b" {
  config_path = 
}
