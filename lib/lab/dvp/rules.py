"""All rules of a parent's webhooks, and how their configuration names them. Pure."""

from collections.abc import Sequence

from lib.kube.resources import Resource
from lib.lab.dvp import device_admission, machine_admission
from lib.lab.dvp.kinds import ADDRESSES, ATTACHMENTS, DISKS, IMAGES, MACHINES, Json

RULES = (*machine_admission.RULES, *device_admission.RULES)
_SHORT = {MACHINES: "vm", DISKS: "vd", ATTACHMENTS: "vmbda", IMAGES: "vi"}
_SHORT[ADDRESSES] = "vmip"
JUDGED: Sequence[Resource] = tuple(_SHORT)


def webhook(kind: Resource) -> str:
    """Return the name of the webhook of a kind.

    Source: deckhouse/virtualization, templates of virtualization-controller.
    """
    return f"{_SHORT[kind]}.virtualization-controller.validate.d8-virtualization"


def denial(kind: Resource, text: str) -> str:
    """Return the message of the API server for what a webhook refuses.

    Source: k8s.io/apiserver, admission/plugin/webhook/errors (ToStatusErr).
    """
    return f'admission webhook "{webhook(kind)}" denied the request: {text}'


def configuration(url: str, authority: str) -> Json:
    """Return the ValidatingWebhookConfiguration. authority: base64 of its PEM.

    No failurePolicy is set, so it is Fail, as on the platform: a write is refused with
    status 500 while nothing listens.
    """
    webhooks = [
        {
            "name": webhook(kind),
            "rules": [
                {
                    "apiGroups": [kind.group],
                    "apiVersions": [kind.version],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": [kind.plural],
                    "scope": "Namespaced",
                }
            ],
            "clientConfig": {"url": f"{url}/{kind.plural}", "caBundle": authority},
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        }
        for kind in JUDGED
    ]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "virtualization-controller-admission-webhook"},
        "webhooks": webhooks,
    }
