"""Valid configurations, with a secret, of a cloud and a cluster that do not exist."""

SECRET = "hunter2-and-more"
CONF = f"""
[Global]
auth-url = http://127.0.0.1:1/v3
username = u
password = {SECRET}
tenant-id = p
domain-id = default
"""
KUBECONFIG = f"""
apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:1"}}}}]
users: [{{name: c, user: {{token: {SECRET}}}}}]
contexts: [{{name: c, context: {{cluster: c, user: c}}}}]
"""
