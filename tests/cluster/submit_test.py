"""`ptrain run` on the login node of the test cluster: jobs that it submits.

    submit_test.py FOLDER PTRAIN     FOLDER: where states and results go

Ends with 77, and the reason, where no cluster can be started.
"""

import json
import os
import pathlib
import shutil
import sys
import unittest

sys.dont_write_bytecode = True

from cluster import Cluster, until, why_not  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER, PTRAIN = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))

RECIPE = """\
version: 1
name: submitted
seed: 5
model: {hidden_size: 24, intermediate_size: 40, num_hidden_layers: 2, num_attention_heads: 2,
        num_key_value_heads: 1}
data: {tokenizer: byte, train: [{path: "text/*.txt"}], packing: {window: 64}, cache: cache}
shapes:
  - {name: only, sequence: 24, global_batch_tokens: 288, steps: STEPS}
learning_rate: {peak: 3e-3, warmup_steps: 5}
precision: fp32
parallel: {dp: 2, shard: 1}
checkpoint: {every_steps: 10}
"""


class SubmitTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = FOLDER / "submitted runs"  # blanks in every path
        cls.cluster = Cluster(FOLDER / "state-submitted", visible=[FOLDER, PTRAIN.parent, ROOT])
        cls.cluster.down()  # one that an interrupted test left still writes there
        shutil.rmtree(cls.work, ignore_errors=True)
        (cls.work / "text").mkdir(parents=True)
        for i in range(60):
            (cls.work / "text" / f"{i:02}.txt").write_text(f"{i} is {i * i} " * (i % 13 + 1))
        for name, steps in (("recipe.yaml", 20), ("long.yaml", 1000000)):
            (cls.work / name).write_text(RECIPE.replace("STEPS", str(steps)))
        cls.addClassCleanup(cls.cluster.down)
        cls.cluster.up(node_timeout=5)
        cls.environment = {"SLURM_PMIX_FENCE": "", "CI": "1", "HOME": str(cls.work),
                           "XDG_CACHE_HOME": str(cls.work / "cache-of-user")}

    def tearDown(self):
        self.cluster.run("scancel", "--user=root")
        self.cluster.wait_for_nodes()

    def ptrain(self, *arguments, code=0, environment=None):
        """On the login node, to its end; what it said."""
        done = self.cluster.run(PTRAIN, *arguments, cwd=self.work, check=False, timeout=60,
                                environment=dict(self.environment, **(environment or {})))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def read(self, name, file):
        return json.loads((self.work / name / file).read_text())

    def job_of(self, name):
        return self.read(name, "job.json")["job"]

    def num_steps(self, name):
        path = self.work / name / "metrics.jsonl"
        return path.read_text().count("\n") if path.exists() else 0

    def wait_for_step(self, name, step):
        until(lambda: self.num_steps(name) >= step, 120, f"{name} makes {step} steps")

    def test_run_is_followed_to_its_end(self):
        said = self.ptrain("run", "recipe.yaml", "-N2", "--comment", 'a "b" #c', "--directory", "whole")
        self.assertRegex(said, r"job \d+ is submitted")
        self.assertRegex(said, r"job \d+ runs on node\[1-2\]")
        self.assertIn("step 20/20", said)
        self.assertNotIn("Ctrl-C stops", said)
        self.assertEqual(self.read("whole", "verdict.json")["code"], 0)
        self.assertEqual([place["node"] for place in self.read("whole", "plan.json")["ranks"]],
                         ["node1", "node2"])
        job = self.cluster.run("scontrol", "-o", "show", "job", self.job_of("whole")).stdout
        self.assertIn('Comment=a "b" #c ', job)

    def test_following_is_left_and_the_job_goes_on(self):
        following = self.cluster.popen(PTRAIN, "run", "long.yaml", "--nodes=2", "--directory", "left",
                                       cwd=self.work, environment=self.environment,
                                       stderr=open(self.work / "left.out", "wb"))
        self.wait_for_step("left", 5)
        self.cluster.run("pkill", "-INT", "-x", "ptrain")
        self.assertEqual(following.wait(60), 0)
        self.assertRegex((self.work / "left.out").read_text(), r"job \d+ goes on\n  ptrain status ")
        before = self.num_steps("left")
        self.wait_for_step("left", before + 20)

    def state(self, name):
        return json.loads(self.ptrain("status", "--json", name))

    def listed(self, name):
        """The line of `list` for a run, without its name."""
        lines = [line.split("  ", 1) for line in self.ptrain("list", ".").splitlines()]
        return next(rest for path, rest in lines if pathlib.Path(path).name == name)

    def submitted(self, name, *options, recipe="long.yaml"):
        self.ptrain("run", recipe, "-N2", "--detach", "--directory", name, *options)

    def test_status_list_and_stop_at_every_stage(self):
        hold = self.cluster.submit("sleep 300", "-N4", "--exclusive")
        self.cluster.wait(hold, "RUNNING")
        self.submitted("stages")
        self.assertEqual(self.state("stages")["state"], "queued")
        self.assertIn("waits in the queue (Resources)", self.ptrain("status", "stages"))
        job = self.job_of("stages")
        self.assertEqual(self.listed("stages"), f"queued  step 0/1000000  job {job}")
        self.assertIn("job", self.ptrain("resume", "stages", code=2))
        self.cluster.run("scancel", hold)
        self.wait_for_step("stages", 20)
        self.assertEqual(self.state("stages")["state"], "running")
        self.assertRegex(self.listed("stages"), rf"^running  step [1-9]\d+/1000000  job {job}$")
        self.assertIn("a checkpoint", self.ptrain("stop", "stages"))
        self.assertEqual(self.cluster.wait(self.job_of("stages"))["ExitCode"], "20:0")
        stopped = self.state("stages")
        self.assertEqual((stopped["state"], stopped["code"]), ("stopped", 20))
        self.assertEqual(stopped["checkpoint"], stopped["step"])
        self.assertEqual(self.listed("stages"), f"stopped  step {stopped['step']}/1000000  job {job}")
        done = self.num_steps("stages")

        said = self.ptrain("resume", "stages", "--detach", "--time=5")
        self.assertIn("cluster.slurm.time", said)
        self.wait_for_step("stages", done + 20)
        logs = self.cluster.popen(PTRAIN, "logs", "--follow", "stages", cwd=self.work,
                                  environment=self.environment, stdout=open(self.work / "logs.out", "wb"))
        self.ptrain("stop", "--now", "stages")
        self.assertEqual(logs.wait(60), 0)
        self.assertIn("==> ", (self.work / "logs.out").read_text())
        # The first signal of the two stops after the step, which may be over before the second comes.
        self.assertRegex(self.state("stages")["reason"], "^stopped (at once|on request)")
        self.assertEqual(self.job_of("stages"), self.state("stages")["job"])

    def test_a_warning_to_the_batch_script_saves_and_ends_the_job(self):
        """USR1, as Slurm sends it by --signal=B:USR1@300, or before a preemption."""
        self.submitted("warned", "checkpoint.every_steps=1000000")
        self.wait_for_step("warned", 15)
        self.cluster.run("scancel", "--signal=USR1", "--batch", self.job_of("warned"))
        self.assertEqual(self.cluster.wait(self.job_of("warned"))["ExitCode"], "21:0")
        verdict = self.read("warned", "verdict.json")
        self.assertEqual((verdict["code"], verdict["step"]), (21, self.num_steps("warned")))
        self.assertIn("signal USR1", verdict["reason"])
        saved = [path.name for path in (self.work / "warned" / "checkpoints").glob("step-*")]
        self.assertEqual(saved, [f"step-{verdict['step']:08}"])
        self.assertEqual(self.listed("warned"),
                         f"stopped  step {verdict['step']}/1000000  job {self.job_of('warned')}")

    def test_taken_out_of_the_queue(self):
        hold = self.cluster.submit("sleep 300", "-N4", "--exclusive")
        self.cluster.wait(hold, "RUNNING")
        self.submitted("never")
        self.assertIn("out of the queue", self.ptrain("stop", "never"))
        ended = self.state("never")
        self.assertEqual((ended["state"], ended["attempt"]), ("stopped", 0))
        self.assertIn("CANCELLED before it began", ended["reason"])

    def refused(self, *options, code=3):
        """Before anything is written or submitted; what it said."""
        before = sorted(path.name for path in self.work.iterdir())
        said = self.ptrain("run", "recipe.yaml", "--directory", "refused", *options, code=code)
        self.assertEqual(sorted(path.name for path in self.work.iterdir()), before)
        self.assertEqual(self.cluster.run("squeue", "-h").stdout, "")
        return said

    def test_refused_with_slurms_reason_and_ours(self):
        for options, slurm, ours in (
                (["-N9"], "Requested node configuration is not available", "'all' has 4"),
                (["-p", "nope"], "Invalid partition name", "there are all\\*, brief"),
                (["-C", "ib"], "Invalid feature", "0 of them as asked for"),
                (["-x", "node77"], "Invalid node name", "sinfo -N"),
                (["-t", "soon"], "Invalid --time", "no time that Slurm knows"),
                (["cluster.slurm.extra=[--mail-kind=END]"], "unrecognized option", "ptrain: ")):
            with self.subTest(options=options):
                said = self.refused(*options)
                self.assertRegex(said, slurm)
                self.assertRegex(said, ours)

    def test_refused_by_ourselves(self):
        self.assertIn("PartitionTimeLimit", self.refused("-pbrief", "-Aphysics", "-t11", code=2))
        self.assertIn("its accounts are physics", self.refused("-pbrief", "-Amaths", code=2))
        said = self.ptrain("run", "recipe.yaml", "-N2", "--directory", "/dev/shm/run", code=2)
        self.assertIn("/dev/shm/run is in this machine's memory (tmpfs)", said)
        self.assertIn("no chain of jobs", self.refused("--array=0-3", code=2))
        self.assertIn("leave one of the two out", self.refused("--array=3", "failure.time_limit=chain", code=2))
        self.assertRegex(self.refused("--array=1000000"), "array specification.*\n.*MaxArraySize")
        self.assertIn("--wrap", self.refused("cluster.slurm.extra=[--wrap=true]", code=2))
        self.assertIn("GPUs", self.refused("--gpus-per-node=2", code=2))
        for name in ("partition", "account", "qos", "comment", "time", "constraint", "exclude"):
            said = self.refused(f"--{name}=a\n#SBATCH --nodes=9", code=2)
            self.assertIn(f"cluster.slurm.{name}: line breaks", said)
        for field in ("slurm.extra", "setup"):
            said = self.refused("-N2", f'cluster.{field}=["--x=a\\n#SBATCH --nodes=9"]', code=2)
            self.assertIn(f"cluster.{field}.0: line breaks", said)
        said = self.ptrain("run", "recipe.yaml", "-N2", "--directory", "a\x1bb", code=2)
        self.assertIn("--directory: line breaks", said)
        path = self.tool("srun", "echo 'MPI plugin types are... none pmi2'")
        self.assertIn("lacks its plugin for PMIx",
                      self.ptrain("run", "recipe.yaml", "-N2", code=3, environment=path))
        self.assertFalse((self.work / "runs").exists())

    def test_dry_run_leaves_nothing(self):
        before = sorted(path.name for path in self.work.iterdir())
        said = self.ptrain("run", "recipe.yaml", "-N2", "-t", "5", "--dry-run")
        for part in ("#SBATCH --time=5", "exec ", "rank 1: any-2, cores 0-3", "memory: ",
                     "to start at "):
            self.assertIn(part, said)
        self.assertEqual(sorted(path.name for path in self.work.iterdir()), before)
        self.assertEqual(self.cluster.run("squeue", "-h").stdout, "")

    def test_what_was_submitted_is_what_is_trained(self):
        hold = self.cluster.submit("sleep 300", "-N4", "--exclusive")
        self.cluster.wait(hold, "RUNNING")
        own = self.work / "own.yaml"
        shutil.copy(self.work / "recipe.yaml", own)
        for name in ("kept", "damaged"):
            self.submitted(name, recipe="own.yaml")
        own.write_text(own.read_text().replace("seed: 5", "seed: 6"))
        copy = self.work / "damaged" / "recipe.yaml"
        copy.write_text(copy.read_text().replace("seed: 5", "seed: 6"))
        self.cluster.run("scancel", hold)
        self.assertEqual(self.cluster.wait(self.job_of("kept"))["ExitCode"], "0:0")
        output = next((self.work / "kept" / "logs").glob("slurm-*.out")).read_text()
        self.assertIn("own.yaml was changed since this job was submitted, and is not what", output)
        self.assertEqual(self.cluster.wait(self.job_of("damaged"))["ExitCode"], "2:0")
        self.assertRegex(self.state("damaged")["reason"], "recipe.yaml was changed after the job")

    def test_environment_by_name_and_setup(self):
        (self.work / "set.yaml").write_text((self.work / "recipe.yaml").read_text() + """
cluster:
  setup: ["echo \\"passed=$PASSED kept=${KEPT-nothing}\\"", "export FROM_SETUP=1"]
  env: [PASSED]
""")
        said = self.ptrain("run", "set.yaml", "-N2", "--directory", "set",
                           environment={"PASSED": "p(x2)$'\"", "KEPT": "secret-1234"})
        self.assertIn("passed=p(x2)$'\" kept=nothing", said)
        holding = [path for path in (self.work / "set").rglob("*") if path.is_file()
                   and b"secret-1234" in path.read_bytes()]
        self.assertEqual(holding, [])

    def tool(self, name, script):
        """A program for the front of PATH; the environment with it."""
        folder = self.work / f"tools of {self.id().rpartition('.')[2]}"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text("#!/bin/bash\n" + script)
        (folder / name).chmod(0o755)
        return {"PATH": f"{folder}:{os.environ['PATH']}"}

    def test_container_by_what_the_machine_has(self):
        for runtime in ("pyxis", "apptainer"):
            container = f"cluster.container={{image: my.img, runtime: {runtime}}}"
            said = self.refused("-N2", container)
            self.assertIn("pyxis" if runtime == "pyxis" else "apptainer is not in PATH", said)

    def test_in_a_container(self):
        """Stand-ins for apptainer and for a srun with pyxis note what they are given."""
        notes = self.work / "contained"
        apptainer = self.tool("apptainer", f"""printf '%s\\n' "$@" >>'{notes}'
while [ "$1" != my.img ]; do shift; done; shift; exec "$@"
""")
        self.ptrain("run", "recipe.yaml", "-N2", "--directory", "in apptainer",
                    "cluster.container={image: my.img, runtime: apptainer, mounts: [/var/log]}",
                    environment=apptainer)
        self.assertEqual(self.read("in apptainer", "verdict.json")["code"], 0)
        for part in (f"{self.work}/in apptainer:{self.work}/in apptainer\n", "/var/log:/var/log\n"):
            self.assertIn(part, notes.read_text())
        self.ptrain("run", "recipe.yaml", "-N1", "--directory", "one in apptainer", "cluster.container.image=my.img",
                    "cluster.container.runtime=apptainer", environment=apptainer)
        self.assertEqual(self.read("one in apptainer", "verdict.json")["code"], 0)
        self.assertIn(f"{self.work}/one in apptainer:", notes.read_text())
        self.assertIn("pyxis needs srun", self.refused("-N1", "cluster.container.image=my.img", code=2))
        srun = self.tool("srun", f"""[ "$1" = --help ] && echo '  --container-image=IMAGE'
for word; do shift; case $word in --container-*) echo "$word" >>'{notes}';; *) set -- "$@" "$word";; esac
done; exec {shutil.which("srun")} "$@"
""")
        self.ptrain("run", "recipe.yaml", "-N2", "--directory", "in pyxis", "cluster.container.image=my.img",
                    environment=srun)
        self.assertEqual(self.read("in pyxis", "verdict.json")["code"], 0)
        self.assertIn("--container-image=my.img\n", notes.read_text())

    def test_setup_that_fails_ends_the_job(self):
        (self.work / "bad.yaml").write_text((self.work / "recipe.yaml").read_text() +
                                            "\ncluster: {setup: ['false', 'echo not reached']}\n")
        said = self.ptrain("run", "bad.yaml", "-N2", "--directory", "bad", code=3)
        self.assertIn("FAILED, exit code 1", said)
        self.assertNotIn("not reached\n", said)
        self.assertEqual(self.state("bad")["state"], "failed")

    def test_forgotten_by_slurm(self):
        self.submitted("forgotten", recipe="recipe.yaml")
        self.cluster.wait(self.job_of("forgotten"))
        for code, verdict in ((0, "finished"), (3, "failed")):
            file = self.work / "forgotten" / "job.json"
            file.write_text(file.read_text().replace(self.job_of("forgotten"), "99999"))
            state = self.state("forgotten")
            self.assertEqual((state["state"], state["code"]), (verdict, code))
            self.assertIn("Slurm has forgotten it", state["job_state"])
            self.assertEqual(self.listed("forgotten"), f"{verdict}  step 20/20  job 99999")
            (self.work / "forgotten" / "verdict.json").unlink(missing_ok=True)

    def test_a_local_run_goes_on_in_a_job(self):
        self.cluster.run(PTRAIN, "run", "recipe.yaml", "parallel={dp: 1, shard: 1}", "--directory",
                         "local", "checkpoint.every_steps=5", cwd=self.work,
                         environment=self.environment)
        (self.work / "more.yaml").write_text((self.work / "recipe.yaml").read_text()
                                             .replace("steps: 20", "steps: 30"))
        said = self.ptrain("resume", "local/checkpoints/step-00000020", "--recipe", "more.yaml", "-N2",
                           "--directory", "moved", "--allow-changes")
        self.assertIn("step 30/30", said)
        self.assertEqual([place["node"] for place in self.read("moved", "plan.json")["ranks"]],
                         ["node1", "node2"])

    def test_detached_and_by_hand(self):
        said = self.ptrain("run", "recipe.yaml", "-N2", "--detach", "--directory", "by hand")
        self.assertIn("ptrain logs --follow", said)
        self.cluster.run("scancel", self.job_of("by hand"))
        self.cluster.wait(self.job_of("by hand"))
        job = self.cluster.run("sbatch", "--parsable", self.work / "by hand" / "job.sh",
                               environment=self.environment).stdout.strip()
        self.assertEqual(self.cluster.wait(job)["ExitCode"], "0:0")
        self.assertEqual(self.num_steps("by hand"), 20)
        self.assertEqual(self.job_of("by hand"), job)


if __name__ == "__main__":
    if reason := why_not():
        print("no test cluster here:", reason)
        sys.exit(77)
    unittest.main(verbosity=2)
