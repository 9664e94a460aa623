dependency "dns" {
  config_path = "../dns"
}
