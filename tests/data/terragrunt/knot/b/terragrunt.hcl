# Waits for c, too.
dependencies {
  paths = ["../c", "../a", "../gone"]
}
