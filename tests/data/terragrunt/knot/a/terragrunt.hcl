dependency "b" {
  config_path = "../b"
}
