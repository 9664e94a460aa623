unit "vpc" {
  source = "../units/vpc"
  path   = "vpc"
}
