locals {
  connection = var.providerClusterConfiguration.provider
}

provider "openstack" {
  auth_url    = local.connection.authURL
  domain_name = local.connection.domainName
  user_name   = local.connection.username
  password    = try(local.connection.password, null)
  region      = local.connection.region
  tenant_name = try(local.connection.tenantName, null)
  tenant_id   = try(local.connection.tenantID, null)
  cacert_file = try(local.connection.caCert, null)
}
