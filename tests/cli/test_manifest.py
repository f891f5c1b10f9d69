# SPDX-License-Identifier: BSD-2-Clause
"""usage: test_manifest.py HCASIM MANIFEST

Tests the manifest of docs/howto/two-machines.md as far as that is possible without a cluster: its fields are those of
Kubernetes' API, they fit each other, and the commands in it work on this machine, where its names stand for 127.0.0.1
and its wires have ports of this machine. Exit status 77: Debian's python3-yaml is not installed.
"""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import unittest

try:
    import yaml
except ImportError:
    print("python3-yaml is not installed")
    sys.exit(77)

HCASIM, MANIFEST = sys.argv[1], pathlib.Path(sys.argv[2])
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
# The fields of the core API (v1) that the manifest may have, by kind of object.
SERVICE = {"clusterIP", "publishNotReadyAddresses", "selector", "ports"}
POD = {"hostname", "subdomain", "restartPolicy", "containers"}
CONTAINER = {"name", "image", "command", "args", "ports", "securityContext"}
PATIENCE = 120


def free_ports(number):
    probes = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(number)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class Manifest(unittest.TestCase):
    def setUp(self):
        self.objects = list(yaml.safe_load_all(MANIFEST.read_text(encoding="utf-8")))
        self.service = next(o for o in self.objects if o["kind"] == "Service")
        self.pods = [o for o in self.objects if o["kind"] == "Pod"]

    def containers(self):
        return [pod["spec"]["containers"][0] for pod in self.pods]

    def test_objects_have_fields_of_the_api(self):
        self.assertEqual([o["kind"] for o in self.objects], ["Service", "Pod", "Pod"])
        for o in self.objects:
            self.assertEqual(set(o), {"apiVersion", "kind", "metadata", "spec"})
            self.assertEqual(o["apiVersion"], "v1")
            self.assertLessEqual(set(o["metadata"]), {"name", "labels"})
            self.assertTrue(DNS_LABEL.fullmatch(o["metadata"]["name"]))
            self.assertLessEqual(set(o["spec"]), SERVICE if o["kind"] == "Service" else POD)
        for container in self.containers():
            self.assertLessEqual(set(container), CONTAINER)
            for words in container["command"], container["args"]:
                self.assertTrue(all(isinstance(word, str) for word in words))
        self.assertEqual(len({o["metadata"]["name"] for o in self.objects}), 3)

    def test_names_are_those_of_the_headless_service(self):
        """Kubernetes gives a pod the name HOSTNAME.SUBDOMAIN if a headless service of that name selects it."""
        self.assertEqual(self.service["spec"]["clusterIP"], "None")
        self.assertIs(self.service["spec"]["publishNotReadyAddresses"], True)
        for pod in self.pods:
            self.assertEqual(pod["spec"]["subdomain"], self.service["metadata"]["name"])
            self.assertEqual(pod["spec"]["hostname"], pod["metadata"]["name"])
            self.assertEqual(pod["metadata"]["labels"], self.service["spec"]["selector"])
            self.assertEqual(pod["spec"]["restartPolicy"], "Never")

    def test_each_wire_is_the_others_counterpart(self):
        ends = []
        for pod, container in zip(self.pods, self.containers()):
            ours, host, theirs, number = re.search(r"--wire udp:(\d+):(\S+):(\d+) --host (\d+)", container["args"][0]).groups()
            self.assertIn({"containerPort": int(ours), "protocol": "UDP"}, container["ports"])
            self.assertIn(int(ours), [port["port"] for port in self.service["spec"]["ports"]])
            self.assertIn(f"until getent hosts {host};", container["args"][0])
            ends.append((f"{pod['spec']['hostname']}.{pod['spec']['subdomain']}", ours, host, theirs, number))
        (a, a_ours, to_b, b_port, a_number), (b, b_ours, to_a, a_port, b_number) = ends
        self.assertEqual((a, a_ours, b, b_ours), (to_a, a_port, to_b, b_port))
        self.assertNotEqual(a_number, b_number)

    def test_containers_need_no_rights(self):
        for container in self.containers():
            rights = container["securityContext"]
            self.assertIs(rights["allowPrivilegeEscalation"], False)
            self.assertIs(rights["runAsNonRoot"], True)
            self.assertEqual(rights["capabilities"], {"drop": ["ALL"]})

    @unittest.skipUnless(shutil.which("ibv_rc_pingpong"), "rdma-core's programs are not installed")
    def test_the_commands_work_here(self):
        names = [f"{pod['spec']['hostname']}.{pod['spec']['subdomain']}" for pod in self.pods]
        ports = free_ports(2)
        started = []
        for number, container in enumerate(self.containers()):
            text = container["args"][0]
            text = re.sub(r"udp:\d+:\S+:\d+", f"udp:{ports[number]}:127.0.0.1:{ports[1 - number]}", text)
            for name in names:
                text = text.replace(name, "127.0.0.1")
            text = text.replace("ibv_rc_pingpong", f"ibv_rc_pingpong -p {ports[0]}")
            program = f'hcasim() {{ "{HCASIM}" "$@"; }}\n' + text.replace("exec hcasim", "hcasim")
            started.append(subprocess.Popen([*container["command"], program], text=True, stdout=subprocess.PIPE,
                                            stderr=subprocess.STDOUT, start_new_session=True))
        try:
            for process in reversed(started):
                said = process.communicate(timeout=PATIENCE)[0]
                self.assertEqual(process.returncode, 0, said)
                self.assertIn("1000 iters in", said)
        finally:
            for process in started:
                if process.poll() is None:
                    os.killpg(process.pid, 9)
                    process.communicate()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
