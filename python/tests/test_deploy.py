"""The ready files of `deploy/`: they are read, and their scripts are looked at by a shell; nothing of them is deployed."""

from __future__ import annotations

import re
import subprocess
import unittest
from pathlib import Path
from typing import Any

try:
    import yaml
except ImportError:
    yaml = None  # type: ignore[assignment]

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def check_script(text: str) -> str:
    """What a shell says against a script without running it."""
    return subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False).stderr


def documents() -> dict[str, Any]:
    return {path.name: yaml.safe_load(path.read_text()) for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))}


def container(job: dict[str, Any]) -> dict[str, Any]:
    (found,) = job["spec"]["template"]["spec"]["containers"]
    return found


class Texts(unittest.TestCase):
    def test_the_page_names_every_file(self) -> None:
        page = (DEPLOY / "README.md").read_text()
        linked = set(re.findall(r"\]\(([^)]+)\)", page))
        files = {str(path.relative_to(DEPLOY)) for path in DEPLOY.rglob("*") if path.is_file()} - {"README.md"}
        self.assertEqual({name for name in linked if not name.startswith("..")}, files)

    def test_slurms_scripts_are_scripts(self) -> None:
        for path in sorted((DEPLOY / "slurm").iterdir()):
            self.assertEqual(check_script(path.read_text()), "", path.name)
            self.assertIn("set -euo pipefail", path.read_text(), path.name)

    def test_the_image_has_one_version_of_ray_with_the_cluster(self) -> None:
        image = (DEPLOY / "Containerfile").read_text()
        wanted = re.search(r"RAY_VERSION=(\d+\.\d+)\.", image)
        said = re.search(r'rayVersion: "(\d+\.\d+)\.', (DEPLOY / "kubernetes/raycluster.yaml").read_text())
        self.assertTrue(wanted and said and wanted.group(1) == said.group(1), (wanted, said))


@unittest.skipIf(yaml is None, "PyYAML is not there")
class Kubernetes(unittest.TestCase):
    def test_documents_are_what_their_names_say(self) -> None:
        kinds = {name: (document["apiVersion"], document["kind"]) for name, document in documents().items()}
        self.assertEqual(
            kinds,
            {
                "indexed-job.yaml": ("batch/v1", "Job"),
                "merge-job.yaml": ("batch/v1", "Job"),
                "raycluster.yaml": ("ray.io/v1", "RayCluster"),
                "rayjob.yaml": ("ray.io/v1", "RayJob"),
            },
        )

    def test_an_indexed_job_has_as_many_parts_as_pods(self) -> None:
        job = documents()["indexed-job.yaml"]
        (script,) = container(job)["args"]
        self.assertEqual(check_script(script), "")
        self.assertNotIn("\n", script.strip(), "folded into one command")
        self.assertIn(f'--shard "$JOB_COMPLETION_INDEX/{job["spec"]["completions"]}"', script)
        self.assertEqual(job["spec"]["completionMode"], "Indexed")

    def test_parts_are_merged_from_where_they_were_put(self) -> None:
        (made,) = container(documents()["indexed-job.yaml"])["args"]
        merged = container(documents()["merge-job.yaml"])["command"][-1]
        self.assertEqual(check_script(merged), "")
        folder = re.search(r'--out "(\S+)/\$JOB_COMPLETION_INDEX"', made)
        self.assertTrue(folder and f"passnet merge {folder.group(1)}/* " in merged, (made, merged))

    def test_volumes_are_those_that_pods_mount(self) -> None:
        specs = [documents()[name]["spec"]["template"]["spec"] for name in ("indexed-job.yaml", "merge-job.yaml")]
        specs.append(documents()["raycluster.yaml"]["spec"]["headGroupSpec"]["template"]["spec"])
        for spec in specs:
            mounts = {mount["name"] for container in spec["containers"] for mount in container["volumeMounts"]}
            self.assertEqual(mounts, {volume["name"] for volume in spec["volumes"]})

    def test_a_ray_job_finds_its_cluster(self) -> None:
        cluster, job = documents()["raycluster.yaml"], documents()["rayjob.yaml"]
        self.assertEqual(job["spec"]["clusterSelector"]["ray.io/cluster"], cluster["metadata"]["name"])
        self.assertEqual(check_script(job["spec"]["entrypoint"]), "")
        self.assertIn("--cluster auto", job["spec"]["entrypoint"])
        # The head carries the driver and is given no unit.
        self.assertEqual(cluster["spec"]["headGroupSpec"]["rayStartParams"]["num-cpus"], "0")


if __name__ == "__main__":
    unittest.main()
