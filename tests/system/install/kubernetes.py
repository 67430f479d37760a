"""Looks at manifests of Kubernetes as its API server does: kubernetes.py FOLDER FILE... ends with a line for each mistake.

Knows the kinds and fields that dlockfs uses, of the API reference of Kubernetes 1.25 and later, and what must fit together. Writes
FOLDER/dlockfs.ini, the configuration in the ConfigMap, and FOLDER/commands, a line for each command that a container or a probe runs.
"""
import sys

import jsonschema
import yaml

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT, "minItems": 1}
NUMBER = {"type": "integer", "minimum": 0}
SWITCH = {"type": "boolean"}
QUANTITIES = {"type": "object", "additionalProperties": False, "properties": {
    "cpu": {"type": "string", "pattern": "^[1-9][0-9]*m?$"},
    "memory": {"type": "string", "pattern": "^[1-9][0-9]*(Ki|Mi|Gi)$"}}}
NAMES = {"type": "object", "additionalProperties": {"type": "string", "pattern": "^[-A-Za-z0-9_.]*$"}}


def one_of(*words):
    return {"enum": list(words)}


def fields(required=(), **properties):
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": properties}


def several(item):
    return {"type": "array", "items": item, "minItems": 1}


METADATA = fields(["name"], name={"type": "string", "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"}, namespace=TEXT, labels=NAMES,
                  annotations=NAMES)
PROBE = fields(["exec"], exec=fields(["command"], command=TEXTS), periodSeconds=NUMBER, timeoutSeconds=NUMBER, failureThreshold=NUMBER,
               initialDelaySeconds=NUMBER)
CONTAINER = fields(
    ["name", "image", "command", "resources", "securityContext"], name=TEXT,
    image={"type": "string", "pattern": r"^[a-z0-9][a-z0-9./-]*:[\w.-]+$"}, command=TEXTS, args=TEXTS,
    resources=fields(["requests", "limits"], requests=QUANTITIES, limits=QUANTITIES),
    securityContext=fields(privileged=SWITCH, allowPrivilegeEscalation=SWITCH, runAsNonRoot=SWITCH, runAsUser=NUMBER,
                           capabilities=fields(drop=TEXTS), seccompProfile=fields(type=one_of("RuntimeDefault", "Unconfined"))),
    startupProbe=PROBE, readinessProbe=PROBE, livenessProbe=PROBE,
    volumeMounts=several(fields(["name", "mountPath"], name=TEXT, mountPath={"type": "string", "pattern": "^/"}, readOnly=SWITCH,
                                mountPropagation=one_of("None", "HostToContainer", "Bidirectional"))))
VOLUME = fields(
    ["name"], name=TEXT,
    hostPath=fields(["path"], path={"type": "string", "pattern": "^/"}, type=one_of("Directory", "DirectoryOrCreate", "Socket")),
    configMap=fields(["name"], name=TEXT), secret=fields(["secretName"], secretName=TEXT, optional=SWITCH, defaultMode=one_of(0o400)))
POD = fields(
    ["containers"], hostPID=SWITCH, hostNetwork=SWITCH, dnsPolicy=one_of("ClusterFirst", "ClusterFirstWithHostNet", "Default"),
    automountServiceAccountToken=SWITCH, enableServiceLinks=SWITCH, priorityClassName=one_of("system-node-critical"),
    terminationGracePeriodSeconds=NUMBER, nodeSelector={"type": "object", "additionalProperties": TEXT},
    tolerations=several(fields(operator=one_of("Exists", "Equal"), key=TEXT, effect=TEXT)),
    restartPolicy=one_of("Always", "OnFailure", "Never"), containers=several(CONTAINER), volumes=several(VOLUME))
DAEMON_SET = fields(
    ["selector", "template", "updateStrategy"], selector=fields(["matchLabels"], matchLabels=NAMES),
    updateStrategy=fields(["type"], type=one_of("OnDelete", "RollingUpdate")),
    template=fields(["metadata", "spec"], metadata=fields(labels=NAMES, annotations=NAMES), spec=POD))


def manifest(version, **properties):
    return fields(["apiVersion", "kind", "metadata"], apiVersion=one_of(version), kind=TEXT, metadata=METADATA, **properties)


KINDS = {
    "Namespace": manifest("v1"),
    "ConfigMap": manifest("v1", data={"type": "object", "additionalProperties": TEXT}),
    "Secret": manifest("v1", type=TEXT, data={"type": "object", "additionalProperties": TEXT}),
    "Pod": manifest("v1", spec=POD),
    "DaemonSet": manifest("apps/v1", spec=DAEMON_SET),
    "Kustomization": fields(["apiVersion", "kind", "resources"], apiVersion=one_of("kustomize.config.k8s.io/v1beta1"), kind=TEXT,
                            resources=TEXTS),
}


def pod_of(document):
    spec = document.get("spec", {})
    return spec.get("template", {}).get("spec") or spec


def mistakes(document):
    """What is wrong in a document, a text each."""
    kind = document.get("kind")
    if kind not in KINDS:
        yield f"unexpected kind {kind}"
        return
    found = sorted(jsonschema.Draft7Validator(KINDS[kind]).iter_errors(document), key=str)
    yield from (f"{kind}: {'.'.join(map(str, error.absolute_path))}: {error.message}" for error in found)
    if found:
        return
    if kind == "DaemonSet" and document["spec"]["selector"]["matchLabels"] != document["spec"]["template"]["metadata"]["labels"]:
        yield f"{kind}: matchLabels are not the labels of its pods"
    pod = pod_of(document)
    volumes = [volume["name"] for volume in pod.get("volumes", [])]
    used = [mount["name"] for container in pod.get("containers", []) for mount in container["volumeMounts"]]
    yield from (f"{kind}: no volume {name}" for name in used if name not in volumes)
    yield from (f"{kind}: nothing uses the volume {name}" for name in volumes if name not in used)
    for container in pod.get("containers", []):
        propagates = [mount for mount in container["volumeMounts"] if mount.get("mountPropagation") == "Bidirectional"]
        if propagates and not container["securityContext"].get("privileged"):
            yield f"{kind}: Bidirectional needs privileged"
        if container["command"][0] == "dlockfs" and "cpu" in container["resources"]["limits"]:
            yield f"{kind}: the daemon has a limit of the processor"


def commands_of(pod):
    for container in pod.get("containers", []):
        yield container["command"]
        probes = [container[probe] for probe in ("startupProbe", "readinessProbe", "livenessProbe") if probe in container]
        yield from (probe["exec"]["command"] for probe in probes)


folder, *files = sys.argv[1:]
wrong = False
commands = []
for name in files:
    with open(name) as file:
        documents = [document for document in yaml.safe_load_all(file) if document is not None]
    if not documents:
        print(f"{name}: nothing in it", file=sys.stderr)
        wrong = True
    for document in documents:
        for mistake in mistakes(document):
            print(f"{name}: {mistake}", file=sys.stderr)
            wrong = True
        if not wrong:
            commands += commands_of(pod_of(document))
        if document.get("kind") == "ConfigMap":
            with open(folder + "/dlockfs.ini", "w") as file:
                file.write(document["data"]["dlockfs.ini"])
with open(folder + "/commands", "w") as file:
    file.writelines(" ".join(command).replace("\n", " ") + "\n" for command in commands)
sys.exit(1 if wrong else 0)
