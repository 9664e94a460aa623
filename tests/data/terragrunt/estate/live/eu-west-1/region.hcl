locals {
  name = "eu-west-1"
}
