"""The configuration of the tests' Slurm; :mod:`slurm_cluster` fills in the names."""

MARK = "# Slurm of neurotier's tests"
"""The first line, by which the file is known for one of the tests."""

CONFIGURATION = """
ClusterName=neurotier
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# Without the shorter life of credentials a job whose node failed would wait two minutes before it is started again.
AuthInfo=socket={folder}/munge.sock,cred_expire=20
CredType=cred/munge
SlurmctldPort=16817
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdSpoolDir={folder}/spool/%n
SwitchType=switch/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin={task}
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
PropagateResourceLimits=NONE
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SchedulerParameters=sched_interval=1,batch_sched_delay=0,defer_batch
SchedulerType=sched/backfill
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
MinJobAge=600
KillWait=2
SlurmdTimeout=60
InactiveLimit=0
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=16819
AccountingStoragePass={folder}/munge.sock
AccountingStorageEnforce=limits
DefMemPerCPU=16
NodeName={nodes} NodeHostname=localhost NodeAddr=127.0.0.1 Port=17001-17004 CPUs=24 RealMemory={node_mib} State=UNKNOWN
PartitionName=main Nodes={nodes} Default=YES LLN=YES MaxTime=INFINITE State=UP
"""

ACCOUNTING = """
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=16819
SlurmUser=root
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=13306
StorageUser=slurm
StoragePass={password}
StorageLoc=slurm_acct_db
"""


LIMITS = """
CgroupPlugin=cgroup/v1
CgroupMountpoint={control_groups}
ConstrainRAMSpace=yes
ConstrainSwapSpace=no
ConstrainCores=no
"""
