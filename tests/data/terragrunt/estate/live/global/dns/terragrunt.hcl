inputs = {
  text = <<-EOF
    a "quote and a } brace
  EOF
}
