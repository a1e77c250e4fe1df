"""The configuration of a test cluster. Its state folder is /run/cluster on every machine of it."""

from network import HEAD, address

CONF = "/run/cluster/slurm.conf"
MEMORY = 4096  # MiB of a node, as Slurm tells it; nothing enforces it

# ctld has no accounting and no cgroups; nodes claim cores that this machine may not have. A requeued job
# waits as long as credentials live. Whoever is away longer than SlurmdTimeout is down, and is taken
# back when it answers. Partition brief has limits to run into.
SLURM_CONF = """\
ClusterName=test
SlurmctldHost=head({head})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=/run/cluster/munge/socket,cred_expire=10
StateSaveLocation=/run/cluster/ctld
SlurmctldPidFile=/run/cluster/head/slurmctld.pid
SlurmctldLogFile=/run/cluster/head/slurmctld.log
SlurmdSpoolDir=/run/cluster/%n/spool
SlurmdPidFile=/run/cluster/%n/slurmd.pid
SlurmdLogFile=/run/cluster/%n/slurmd.log
SlurmdParameters=config_overrides
TmpFS=/tmp
MpiDefault=pmix
ProctrackType=proctrack/linuxproc
TaskPlugin=task/{task_plugin}
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=1,sched_min_interval=100000,bf_interval=2
ReturnToService=1
SlurmctldTimeout=10
SlurmdTimeout={node_timeout}
MessageTimeout={message_timeout}
KillWait=5
MinJobAge=300
NodeName=node[1-{nodes}] NodeAddr={first}[1-{nodes}] \\
  Sockets=1 CoresPerSocket={cores} ThreadsPerCore=1 RealMemory={memory} State=UNKNOWN{gres}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=brief Nodes=node1 MaxTime=10 AllowAccounts=physics State=UP
{gres_types}"""


def slurm_conf(num_nodes, cores, node_timeout, gpus=0, binds=False):
    return SLURM_CONF.format(head=address(HEAD), first=address(""), nodes=num_nodes, cores=cores, memory=MEMORY,
                             task_plugin="affinity" if binds else "none", node_timeout=node_timeout, message_timeout=max(3, node_timeout // 2),
                             gres=f" Gres=gpu:{gpus}" if gpus else "",
                             gres_types="GresTypes=gpu\n" if gpus else "")


def gres_conf(gpus):
    """Slurm believes only in GPUs that are files: devices that every machine has stand for them."""
    files = ("/dev/null", "/dev/zero", "/dev/full")
    return "".join(f"Name=gpu File={files[i]}\n" for i in range(gpus))


def hosts(num_nodes):
    lines = ["127.0.0.1 localhost", f"{address(HEAD)} head"]
    lines += [f"{address(i)} node{i}" for i in range(1, num_nodes + 1)]
    return "\n".join(lines) + "\n"
