"""What people report of where launchers start ranks, and of recipes (docs/complaints.md), played on the test cluster.

    complaints_test.py FOLDER PTRAIN FAKE     FOLDER: where states and results go; FAKE: a ptrain beside
                                            an engine without tensors (tests/launch/fake_engine.cc)

Ends with 77, and the reason, where no cluster can be started.
"""

import os
import pathlib
import shutil
import sys
import time
import unittest

sys.dont_write_bytecode = True

from cluster import until, why_not  # noqa: E402
from fake_runs import FakeRuns  # noqa: E402
from runs import DP  # noqa: E402

FOLDER, PTRAIN, FAKE = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(3))
ENDLESS = "shapes.0.steps=1000000"


class Complaints(FakeRuns):
    folder, binary, fake_ptrain = FOLDER, PTRAIN, FAKE


class Places(Complaints):
    state = "state-places"

    def test_names_that_a_node_does_not_know(self):
        self.cluster.run("mount", "--bind", "/dev/null", "/etc/hosts", on="node3")
        self.assertEqual(self.fake("nameless", "", nodes=4)[0], 0)
        self.cluster.run("umount", "/etc/hosts", on="node3")
        self.cluster.run("mount", "--bind", "/dev/null", "/etc/hosts", on="head")
        code, said = self.fake("nameless head", "")
        self.cluster.run("umount", "/etc/hosts", on="head")
        self.assertEqual(code, 3, said)
        self.assertIn("the node node2 has no address here", said)

    def test_variables_and_secrets(self):
        value = "a \"b\" 'c' (d) [e] {f} $HOME `g` \\h;i&j|k<l>m*n?~ ü\t=,:\nlast"
        secret = "hf_SecretOfTheUser42"
        shown = {"PTRAIN_TEST_VALUE": value, "PTRAIN_FAKE_SHOW": "PTRAIN_TEST_VALUE", "HF_TOKEN": secret}
        run = self.cluster.popen("salloc", "-Q", "-N4", self.fake_bin / "ptrain", "run", "recipe.yaml", ENDLESS,
                                 "parallel={dp: 4, shard: 1}", "--directory", "shown", cwd=self.work,
                                 environment=dict(self.environment, **shown))
        until(lambda: self.events("shown", "shape_started"), 60, "it trains")
        for place in ("head", *self.cluster.nodes):
            self.assertNotIn(secret, self.cluster.run("ps", "-eo", "args=", on=place).stdout)
        self.cluster.run("pkill", "-INT", "-x", "ptrain")
        self.assertEqual(run.wait(60), 20)
        for rank in range(4):
            self.assertIn(f"PTRAIN_TEST_VALUE=[{value}]\n", self.log("shown", rank))
        for path in (self.work / "shown").rglob("*"):
            self.assertFalse(path.is_file() and secret.encode() in path.read_bytes(), path)
        for where in (["salloc", "-Q", "-N2"], []):
            dry = self.cluster.run(*where, PTRAIN, "run", "recipe.yaml", DP, *([] if where else ["-N2"]), "--dry-run",
                                   cwd=self.work, environment=dict(self.environment, **shown))
            self.assertNotIn(secret, dry.stdout + dry.stderr)

    def test_paths_with_quotes_and_letters_of_all_kinds(self):
        odd = self.work / "it's a \"räum\" $HOME (x2) 漢 #1"
        odd.mkdir()
        shutil.copytree(self.fake_bin, odd / "bin")
        shutil.copytree(self.work / "text", odd / "text")
        shutil.copy(self.work / "recipe.yaml", odd / "the recipe.yaml")
        for options, name in ((["-N2"], "a \"run\" of 'mine'"), (["-N2"], "not/there/yet")):
            done = self.cluster.run(odd / "bin/ptrain", "run", odd / "the recipe.yaml", DP, *options, "--directory",
                                    odd / name, cwd=odd, environment=self.environment, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertTrue((odd / name / "verdict.json").exists())

    def test_the_dry_run_tells_all_and_per_node(self):
        both = ("-N2", "cluster.ranks_per_node=2", "--dry-run")
        said = self.login("run", "recipe.yaml", "parallel={dp: 4, shard: 1}", *both)
        self.assertIn("4 ranks on 2 nodes, 2 on each", said)
        self.assertIn("rank 3: any-2, ", said)
        said = self.login("run", "recipe.yaml", "parallel={dp: 8, shard: 1}", *both, code=2)
        self.assertIn("dp x shard is 8, but cluster.ranks_per_node is 2 on 2 nodes", said)
        said = self.ptrain(1, "run", "recipe.yaml", "parallel={dp: 8, shard: 1}", "cluster.ranks_per_node=2", "--dry-run", code=2)
        self.assertIn("8 does not divide the 2 ranks of this run", said)

    def test_programs_of_one_node_and_limits(self):
        tools = pathlib.Path(f"/tmp/ptrain-tools-{os.getpid()}")  # of the host and of head
        tools.mkdir()
        self.addCleanup(shutil.rmtree, tools)
        for name in ("srun", "scontrol", "salloc"):  # nodes have no such folder, and so no program
            (tools / name).symlink_to(shutil.which(name))
        code, said = self.fake("no path", "", before=["env", f"PATH={tools}"])
        self.assertEqual(code, 0, said)
        code, said = self.fake("few files", "", before=["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"])
        self.assertEqual(code, 3)
        self.assertIn("a process may open 64 files here, but starting 2 ranks takes 66", said)

    def test_read_only_variables(self):
        readonly = "cluster.setup=['readonly HOME PATH LANG TMPDIR=/tmp; export TMPDIR']"
        self.login("run", "recipe.yaml", "-N2", DP, readonly, "--directory", "readonly")
        self.assertEqual(self.read("readonly", "verdict.json")["code"], 0)

    def test_a_node_that_never_comes(self):
        go = self.work / "go"
        command = f"while [ ! -e go ]; do sleep 0.05; done; exec '{self.fake_bin}/ptrain' run recipe.yaml '{DP}' " \
                  "failure.max_restarts=0 --directory gone"
        with open(self.work / "gone.out", "wb") as said:
            run = self.cluster.popen("salloc", "-Q", "-N2", "bash", "-c", command, cwd=self.work,
                                     environment=self.environment, stderr=said)
        until(lambda: self.cluster.run("squeue", "-h", "-t", "running", "-o", "%A").stdout, 20, "the job runs")
        self.cluster.cut("node2")
        begin = time.monotonic()
        go.touch()
        self.assertEqual(run.wait(90), 3)
        print(f"a node that never comes: named after {time.monotonic() - begin:.1f} s", file=sys.stderr)
        self.assertIn("node2: does not answer", (self.work / "gone.out").read_text())

    def test_two_networks(self):
        """One of containers, alike on all nodes, and one of their own beside the one by their names."""
        for name in ("head", *self.cluster.nodes):
            for device in ("storage0", "docker0"):
                self.addCleanup(self.cluster.run, "ip", "link", "delete", device, on=name)
            self.cluster.add_network(name, "storage0", "10.9.0.")
            self.cluster.run("ip", "link", "add", "docker0", "type", "bridge", on=name)
            self.cluster.run("ip", "address", "add", "172.17.0.1/16", "dev", "docker0", on=name)
            self.cluster.run("ip", "link", "set", "docker0", "up", on=name)
        self.ptrain(2, "run", "recipe.yaml", DP, "--directory", "by name")
        self.assertIn("OMPI_MCA_btl_tcp_if_include=eth0", self.log("by name", 1))
        used = self.cluster.bytes_on("node1", "storage0")
        self.ptrain(2, "run", "recipe.yaml", DP, "cluster.interface=storage0", "--directory", "by storage")
        self.assertIn("OMPI_MCA_btl_tcp_if_include=storage0", self.log("by storage", 1))
        self.assertEqual(self.losses("by storage"), self.losses("by name"))
        self.assertGreater(self.cluster.bytes_on("node1", "storage0") - used, 8 << 20)  # the ring alone sends 4 MiB each way
        code, said = self.fake("no such", "", "cluster.interface=ib7")
        self.assertEqual(code, 3)
        self.assertIn("this machine has no 'ib7'", said)
        self.assertIn("storage0 (10.9.0.254)", said)

    def test_gpus_and_nics_of_ranks(self):
        environment = dict(self.with_gpus(), CUDA_VISIBLE_DEVICES="3,1")
        wanted = ("parallel={dp: 4, shard: 1}", "cluster.file=gpus.yaml")
        dry = self.cluster.run("salloc", "-Q", "-N2", self.fake_bin / "ptrain", "run", "recipe.yaml", *wanted, "--dry-run",
                               cwd=self.work, environment=dict(self.environment, **environment)).stdout
        self.assertIn("rank 0: node1, core 0, GPU 3 (0000:61:00.0), NIC mlx5_3\n", dry)
        self.assertIn("rank 3: node2, core 1, GPU 1 (0000:21:00.0), NIC mlx5_1\n", dry)
        self.assertIn(" --gpu-bind=none ", dry)
        done = self.cluster.run("salloc", "-Q", "-N2", self.fake_bin / "ptrain", "run", "recipe.yaml", *wanted,
                                "--directory", "gpus", cwd=self.work, check=False,
                                environment=dict(self.environment, **environment))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for rank in range(4):
            nic = ("mlx5_3", "mlx5_1")[rank % 2]
            for part in ("CUDA_DEVICE_ORDER=[PCI_BUS_ID]", "CUDA_VISIBLE_DEVICES=[3,1]", f"UCX_NET_DEVICES=[{nic}:1]",
                         "NCCL_SOCKET_IFNAME=[=eth0]"):
                self.assertIn(part, self.log("gpus", rank))


class Gpus(Complaints):
    """Slurm counts GPUs and gives them to jobs; ranks use the engine without tensors."""
    state = "state-gpus"
    machines = {"gpus": 2}

    def run_fake(self, gpus_per_node, *arguments, code=0):
        return self.login("run", "recipe.yaml", "-N2", f"--gpus-per-node={gpus_per_node}", "cluster.file=gpus.yaml",
                          "parallel={dp: 4, shard: 1}", *arguments, code=code, binary=self.fake_bin / "ptrain",
                          environment=self.environment_with_gpus)

    def test_a_job_of_nodes_with_gpus(self):
        self.environment_with_gpus = self.with_gpus()
        dry = self.run_fake(2, "--dry-run")
        for part in ("#SBATCH --gpus-per-node=2\n", "rank 3: g2, core 1, GPU 1\n"):
            self.assertIn(part, dry)
        self.assertIn("1 for 2 ranks of a node", self.run_fake(1, "--directory", "few", code=2))
        self.assertIn("no nodes with as many GPUs", self.run_fake(3, "--directory", "many", code=3))
        self.run_fake(2, "--directory", "gpu job")
        self.assertEqual(self.read("gpu job", "verdict.json")["code"], 0)
        shown = self.cluster.run("scontrol", "show", "job", self.read("gpu job", "job.json")["job"]).stdout
        self.assertIn("TresPerNode=gres:gpu:2", shown)
        for rank in range(4):
            for part in (f"GPU {rank % 2} (0000:{('11', '21')[rank % 2]}:00.0)", "CUDA_VISIBLE_DEVICES=[]"):  # all
                self.assertIn(part, self.log("gpu job", rank))


class Recipes(Complaints):
    """Each is refused on the login node, before the queue, with its place."""
    state = "state-recipes"

    def variant(self, old, new):
        text = (self.work / "recipe.yaml").read_text()
        self.assertIn(old, text)
        (self.work / "variant.yaml").write_text(text.replace(old, new))

    def refused(self, old, new, *says):
        self.variant(old, new)
        said = self.login("run", "variant.yaml", "-N2", "--directory", "refused", code=2)
        line = (self.work / "variant.yaml").read_text().partition(new)[0].count("\n") + 1 + new.strip("\n").count("\n")
        self.assertRegex(said, rf"variant\.yaml:{line}(:|\b)")
        for part in says:
            self.assertIn(part, said)
        self.assertFalse((self.work / "refused").exists())
        self.assertEqual(self.cluster.run("squeue", "-h").stdout, "")

    def test_keys(self):
        self.refused("learning_rate:", "lerning_rate:", "did you mean 'learning_rate'?")
        self.refused("{every_steps: 10}", "{evry_steps: 10}", "did you mean 'every_steps'?")
        self.refused("warmup_steps: 5", "warmup_step: 5", "did you mean 'warmup_steps'?")
        self.refused("precision: fp32\n", "precision: fp32\nprecision: fp32\n", "precision")
        self.refused("{peak: 3e-3,", "{peak: 3e-3, peak: 3e-3,", "peak")

    def test_numbers_and_booleans(self):
        for text in ("1e-3", ".001", "0.001", "1.0E-3"):
            self.variant("peak: 3e-3", f"peak: {text}")
            self.login("run", "variant.yaml", "-N2", DP, "--dry-run")
        for text in ("1_000", "010", "1:30", "4k", "'5'", "5%"):
            self.refused("warmup_steps: 5", f"warmup_steps: {text}", "warmup_steps")
        for text in ("no", "off"):
            self.refused("precision: fp32", f"precision: {text}", "precision")
        for text in ("yes", "1", "FALSE", "'true'"):
            self.refused("num_hidden_layers: 2", f"tie_word_embeddings: {text}, num_hidden_layers: 2", "tie_word_embeddings")

    def test_overrides(self):
        name = "a=b%c@d#e"
        self.login("run", "recipe.yaml", "-N2", DP, f"cluster.slurm.comment={name}", "--directory", "overrides")
        shown = self.cluster.run("scontrol", "show", "job", self.read("overrides", "job.json")["job"]).stdout
        self.assertIn(f"Comment={name}", shown)


if __name__ == "__main__":
    if reason := why_not():
        print("no test cluster here:", reason)
        sys.exit(77)
    unittest.main(verbosity=2)
