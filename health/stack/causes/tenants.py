"""Why a tenant's pod does not start, crashes, or waits for a node. Pure.

- kubernetes, pkg/kubelet/cm/devicemanager/manager.go and lifecycle/predicate.go: a pod that the kubelet refuses is
  Failed with the reason UnexpectedAdmissionError ("Allocate failed due to …") and is not tried again
  (kubernetes #121061, k8s-device-plugin #231, #2038; issues/130145 of kubernetes: stale allocations).
- k8s-device-plugin, internal/plugin/server.go: "request for 'nvidia.com/gpu: 2' too large: maximum request size for
  shared resources is 1" (failRequestsGreaterThanOne), of MPS "invalid request: maximum request size …".
- containerd and nvidia-container-runtime: "failed to create containerd task: … failed to inject CDI devices:
  unresolvable CDI devices management.nvidia.com/gpu=…" (gpu-operator #1876, nvidia-container-toolkit #1239, #1895),
  "CDI device injection failed: unresolvable CDI devices k8s.gpu.nvidia.com/device=gpu-1" (dra-driver-nvidia-gpu #736).
- kubernetes, pkg/kubelet/cm/dra: "Failed to prepare dynamic resources: … DRA driver NAME is not registered"
  (dra-driver-nvidia-gpu #814); dra-driver-nvidia-gpu, cmd/compute-domain-kubelet-plugin: "error asserting ComputeDomain
  Ready: current node not ready in ComputeDomain".
- kubernetes, pkg/scheduler: "cannot allocate all claims", "Insufficient nvidia.com/gpu"; pkg/volume: "Multi-Attach
  error"; CUDA's runtime and PyTorch: the names of errors in what a container leaves as its termination message.
- dra-driver-nvidia-gpu: "invalid device, empty device edits" (#1144), "requested device channel-0 is already allocated
  to different claim" (#1162), "error setting time slice" on a Tesla P4 (#41, #222), /dev/nvidia* made after the CDI
  file (#1380). kubernetes #129402, #131957: a pod with prepared claims ends only once its driver gave them back.
- kubernetes, pkg/kubelet/lifecycle/predicate.go: "Node didn't have enough resource: nvidia.com/gpu, requested: 1, used:
  8, capacity: 8". Volcano's and HAMi's vGPU: "device number not matched" (volcano-vgpu-device-plugin #93).
- CUDA, driver_types.h: 805 to 810 are of MPS (nvidia-container-toolkit #714). nccl-tests: "Test NCCL failure"
  (dra-driver-nvidia-gpu #957). PyTorch, torch/csrc/DataLoader.cpp: "DataLoader worker … is killed by signal". ROCm:
  "Unable to open /dev/kfd read-write", "no ROCm-capable device is detected", "Tensile host: No devices found" (ollama
  #6685).
- HAMi, pkg/scheduler (FilteringFailed, "all node scores do not meet": #591; "node unregistered": #620) and
  pkg/device/common: names of reasons such as CardInsufficientMemory (#1332); pkg/util: "no binding pod found on node"
  (#653), "empty id from pod annotation" (#1548). HAMi-core: "Device 0 OOM …" (HAMi-core #170).
- gpushare-device-plugin, allocate.go: "no-gpu-has-2MiB-to-run" where its scheduler noted no GPU
  (gpushare-scheduler-extender #58, #80). Tencent's gpu-admission: "ExceedsGPUQuota" (gpu-manager #24).
- Volcano: "hami-vgpuDeviceSharing error" (volcano #4511). PyTorch's c10d, gloo and NCCL, where a peer ended: kubeflow
  trainer #1638, #1872, #2008, nccl #193, #1514.
- NVML in a container without rights to /dev/nvidia*: nvidia-container-toolkit #33, #210, #580.
"""

import re
from dataclasses import replace

from gpu.compatibility import the_matrix
from gpu.compatibility.ranges import is_older, order
from gpu.resources import is_gpu_resource
from gpu.resources.names import profile_in
from health.rules.pods_failing import BY_KUBELET
from health.stack.causes import cluster, configuration, device_plugin, images, runtime, waiting
from health.stack.causes.base import Cause, CauseRule, ClaimSigns, Saying, Signs, Weight, words
from health.stack.causes.crash import CRASHES, OF_THE_RUNTIME, describe, ended, has_no_log

AGAIN = "The kubelet does not try again: delete the pod, or let its owner make another."
KUBELET_RESTART = "Restart the kubelet where pods go on being refused while GPUs are free."

SHARED_TOO_LARGE = Saying(
    "shared_too_large",
    words(r"maximum request size for shared resources is (?P<most>\d+)"),
    "It asks for more of a shared GPU than one pod is given here: at most {most}.",
    "Ask for {most} in its template. More shares give no more of the GPU (failRequestsGreaterThanOne of the device "
    f"plugin's sharing). {AGAIN}",
)
NOT_HEALTHY = Saying(
    "devices_unhealthy",
    words(r"no healthy devices present; cannot allocate unhealthy devices (?P<resource>[^\s,;]+)",
          r"previously allocated devices are no longer healthy; can only allocate healthy devices (?P<other>[^\s,;]+)"),
    "The kubelet refused it: no healthy device of {resource}{other} was left on this node.",
    f"Look at the GPUs of this node and at its device plugin. {AGAIN}",
)  # fmt: skip
NONE_FREE = Saying(
    "devices_taken_by_others",
    words(r"requested number of devices unavailable for (?P<resource>[\w.-]+/[\w.-]*\w)"),
    "The kubelet refused it: too few devices of {resource} were free when it came.",
    f"Look who holds the GPUs of this node. {KUBELET_RESTART} {AGAIN}",
)
UNREGISTERED = Saying(
    "plugin_unregistered",
    words(r"can(not|'t) allocate unregistered device (?P<resource>[^\s,;]+)"),
    "The kubelet refused it: no device plugin has registered {resource} since the kubelet started.",
    f"Look at the device plugin of this node: it must register again after a restart of the kubelet. {AGAIN}",
)
NOT_THE_POD = Saying(
    "vgpu_other_pod",
    words("device number not matched", "no binding pod found on node", "(empty id from|parse) pod annotation"),
    "The kubelet refused it: the vGPU plugin was asked for another pod than its scheduler had planned for this node.",
    "Several pods started on the node at one moment, or another scheduler placed it (schedulerName). Take a newer "
    f"release of the vGPU plugin. {AGAIN}",
)
PLUGIN_WENT = Saying(
    "plugin_went_away",
    words("allocate failed due to rpc error.{0,60}(transport is closing|code = unavailable|connection refused)"),
    "The kubelet refused it: the device plugin of this node ended as it was asked for GPUs.",
    f"Look at the device plugin's pod here, and whether it crashes. {AGAIN}",
)
PLUGIN_FAILED = Saying(
    "plugin_allocate_failed",
    words(r"allocate failed due to", r"getpreferredallocation rpc failed", r"prestartcontainer rpc failed"),
    "The kubelet refused it: the device plugin of this node did not hand out the GPUs.",
    f"The line names the reason. Look at the device plugin's log here, and for Xid 79 in the kernel's. {AGAIN}",
)
CDI_MANAGEMENT = Saying(
    "cdi_management",
    words(r"unresolvable cdi devices? (?:[^\s,]+, ?)*(?P<device>management\.nvidia\.com/gpu=[^\s,:\"]+(?::\d+)?)"),
    "Its CDI device {device} cannot be resolved: those of management.nvidia.com are for the operator's own pods.",
    "Take runtimeClassName nvidia-cdi out of the pod, and use nvidia or none: from GPU Operator 25.10 on, the device "
    "plugin injects GPUs by CDI itself.",
    alone="Take runtimeClassName nvidia-cdi out of the pod, and use nvidia or none. Or, on the node: nvidia-ctk cdi "
    "generate --vendor management.nvidia.com --output /var/run/cdi/management.nvidia.com-gpu.yaml.",
)
CDI_OF_CLAIM = Saying(
    "cdi_of_claim",
    words(r"unresolvable cdi devices? (?:[^\s,]+, ?)*(?P<device>k8s\.[^\s,\"]+/[^\s,\"]+)",
          r"unresolvable cdi devices? (?:[^\s,]+, ?)*(?P<intel>intel\.com/[^\s,\"]+)"),
    "The CDI device {device}{intel} of its claim cannot be resolved on this node.",
    "The DRA driver and {runtime} must use one folder for CDI files: enable_cdi and cdi_spec_dirs of {runtime}, and "
    "the mount of /var/run/cdi in the driver's pod. Then delete this pod.",
)  # fmt: skip
GPUSHARE = Saying(
    "gpushare_unplanned",
    words(r"no-gpu-has-\d+\w*-to-run"),
    "The plugin that shares GPU memory knows no GPU for it: its scheduler chose none.",
    "Look whether the scheduler's configuration has gpushare-scheduler-extender and reaches it: that writes the GPU to "
    "the pod (ALIYUN_COM_GPU_MEM_IDX). Then delete this pod.",
)
UNKNOWN_DEVICE = Saying(
    "device_unknown",
    words(r"nvidia-container-cli\S*: device error: (?P<device>\S+): unknown device",
          r"invalid device id .{0,40}(?P<other>(gpu|mig)-[0-9a-f-]+)"),
    "It was given the GPU {device}{other}, which the driver of this node does not have.",
    "A GPU was lost or cut anew since, or NVIDIA_VISIBLE_DEVICES of the image names it. Look at nvidia-smi -L on the "
    "node; restart the device plugin's pod, then delete this one.",
)  # fmt: skip
NOT_REGISTERED = Saying(
    "dra_not_registered",
    words(r"(?:dra )?(?:driver|plugin) (?:name )?\"?(?P<driver>[a-z0-9.-]+\.[a-z]+)\"?"
          r" (?:is )?not (?:registered|found in the list of registered dra)"),
    "The kubelet of this node has no DRA driver {driver}: its plugin is not registered here.",
    "Look whether the DRA driver's pod runs on this node and is ready; after a restart of the kubelet delete that pod.",
)  # fmt: skip
DOMAIN_NOT_READY = Saying(
    "compute_domain_not_ready",
    words("not ready in computedomain", "asserting computedomain ready", "computedomain.{0,40}not ready"),
    "It waits for its ComputeDomain, which is not ready on this node.",
    "Look at the ComputeDomain's daemon on each of its nodes: its IMEX must reach the others.",
)
DOMAIN_NAMESPACE = Saying(
    "compute_domain_refused",
    words("asserting computedomain's namespace", "computedomain.{0,60}(not found|namespace)"),
    "Its claim names a ComputeDomain that is not there, or is of another namespace.",
    "Take the ResourceClaimTemplate that the ComputeDomain makes in its own namespace.",
)
MIG_CUT = Saying(
    "dra_no_room",
    words("error creating gpu instance.*insufficient resources", "insufficient resources.*gpu instance"),
    "The GPU of its claim cannot be cut as the claim wants: other slices take the room.",
    "Delete the pod, so that another GPU is chosen, or end what holds the slices.",
)
EMPTY_DEVICE = Saying(
    "dra_empty_device",
    words("empty device edits"),
    "The DRA driver writes no device for its claim into the CDI file: what it knows of the GPU driver's files is from "
    "before the driver or the toolkit was replaced.",
    "Delete the DRA driver's pod on this node: it reads the files again, and this pod starts by itself.",
)
HELD_BY_CLAIM = Saying(
    "dra_device_held",
    words(r"requested device (?P<device>\S+) is already allocated to different claim (?P<claim>[\w-]+)"),
    "On this node, {device} is still prepared for another claim (UID {claim}).",
    "Look whether a pod still uses that claim. Where none does, the DRA driver's checkpoint on the node is stale: take "
    "a newer release of the driver, and remove checkpoint.json once no pod with a claim is left on the node.",
)
TIME_SLICE = Saying(
    "dra_time_slice",
    words("error setting time ?slice", "failed to set timeslice"),
    "The DRA driver cannot set a time slice on the GPU of its claim.",
    "GPUs before Volta know no time slices: take another GPU, or a release that sets none where the feature gate "
    "TimeSlicingSettings is off. On others, the DRA driver's log has what nvidia-smi says.",
)
PREPARE = Saying(
    "dra_prepare_failed",
    words("failed to prepare dynamic resources", "noderesources? failed", "nodeprepareresources"),
    "The DRA driver of this node cannot prepare the devices of its claim.",
    "The line names the reason. Look at the DRA driver's pod on this node; where a process of the host holds the GPU, "
    "stop that.",
)
NO_TEMPLATE = Saying(
    "claim_not_made",
    words(r"^(?!.*prepare).*resourceclaim(template)?s?(\.resource\.k8s\.io)? .{0,80}(not found|does not exist)",
          r"^podresourceclaim .{0,200}(not found|does not exist|is forbidden)", "cannot find resource ?claim"),
    "A ResourceClaim or its template that the pod names is not there.",
    "Make it in the pod's namespace, or correct the name in the pod's resourceClaims.",
)  # fmt: skip
CLAIM_TO_COME = Saying(
    "claim_not_made_yet",
    words(r"waiting for .{0,60}to create the resourceclaim \"?(?P<claim>[^\s\".]+)"),
    "It waits for its ResourceClaim {claim}, which is not made yet.",
    "kube-controller-manager makes it of the pod's template: Events of the pod say what hinders it. Where its driver "
    "has a controller of its own, look at that pod.",
    weight=Weight.WAITING,
)
NO_CLASS = Saying(
    "device_class_missing",
    words(r"device ?class \\?\"?(?P<name>[^\s\"\\]+)\\?\"? (does not exist|not found)"),
    "Its claim names the DeviceClass {name}, which is not there.",
    "Install the DRA driver whose chart makes it, or correct deviceClassName in the claim.",
)
MULTI_ATTACH = Saying(
    "volume_attached_elsewhere",
    words("multi-attach error", "volume is already (exclusively )?attached"),
    "A volume of the pod is still attached to another node.",
    "It comes once the pod there has ended and its node has let it go. Where that node is down: delete its "
    "VolumeAttachment.",
)
MOUNT = Saying(
    "volume_not_mounted",
    words(r"mountvolume\.\w+ failed", "unable to (attach or )?mount volumes", "attachvolume.attach failed"),
    "A volume of the pod cannot be mounted on this node.",
    "The line names the volume: a ConfigMap, Secret, claim or host path that is not there, or a storage driver that "
    "does not answer.",
)
HAMI = Saying(
    "hami_no_gpu",
    words(r"\b(?P<why>(?:Card|Node|AllocatedCards)(?:Insufficient|TimeSlicing|ComputeUnits|Type|Uuid|NotFound|Mig)\w+|"
          r"NumaNotFit|ExclusiveDeviceAllocateConflict|ResourceQuotaNotFit)\b"),
    "HAMi's scheduler finds no GPU for it: {why}.",
    "HAMi counts what pods were promised, not what they use. Ask for less of nvidia.com/gpumem or gpucores, or wait "
    "until others end; TimeSlicing is deviceSplitCount of its plugin, Mismatch an annotation of the pod.",
    weight=Weight.WAITING,
)  # fmt: skip
HAMI_NO_NODE = Saying(
    "hami_no_node",
    words("all node scores do not meet", r"no available node, \d+ nodes do not meet", "node unregistered",
          r"vgpudevicesharing \w+"),
    "HAMi's or Volcano's scheduler of vGPUs finds no node for it: none has the GPUs, or none has registered with it.",
    "Ask for at most as many GPUs as one node has. Look whether the vGPU device plugin runs on the nodes and wrote its "
    "GPUs to their annotations; the scheduler's log names the reason for each node.",
    weight=Weight.WAITING,
)  # fmt: skip
GPU_QUOTA = Saying(
    "gpu_quota",
    words(r"\bExceedsGPUQuota\b"),
    "Its namespace has used up its quota of GPUs, or has none: gpu-admission lets it on no node.",
    "Look at the ConfigMap with the quotas of gpu-admission; it comes once other pods of the namespace end.",
    weight=Weight.WAITING,
)
SHARED_MEMORY = Saying(
    "shared_memory",
    words("(out of|insufficient) shared memory", "raise your shared memory limit",
          r"no space left.{0,80}/dev/shm\b", r"shared memory segment /dev/shm\b"),
    "The program ran out of /dev/shm: a container has 64 MiB of it, unless its pod asks for more. That is no memory of "
    "a GPU.",
    "Mount an emptyDir with medium: Memory at /dev/shm. What is in it counts against the container's memory limit.",
)  # fmt: skip
WORKER_KILLED = Saying(
    "host_memory_worker",
    words("dataloader worker .{0,60}killed by signal: killed"),
    "A process of the program was killed: most often, the container used more of the node's memory than its limit. "
    "That is no memory of a GPU.",
    "Raise its memory limit, or start fewer workers. What is in /dev/shm counts.",
)
CUDA_MEMORY = Saying(
    "cuda_out_of_memory",
    words("(cuda|hip) out of memory", "(cuda|hip) error: out of memory",
          "(cuda|hip)_?error_?(out_?of_?memory|memory_?allocation)",
          "outofmemoryerror: cuda", "error code out of memory", r"cuda failure( 2)?\W{1,3}out of memory",
          r"\bdevice \d+ OOM:? (usage )?\d+", "resource_exhausted: out of memory while",
          "failed to allocate .{0,40}(gpu|device) memory", "cumemalloc.{0,40}out of memory",
          "out of memory.{0,40}cudamalloc", "cublas_status_alloc_failed", "no available memory for the cache blocks",
          "less than desired gpu memory utilization"),
    "The program asked for more GPU memory than was free on its GPU.",
    "Make the batch or the model smaller, or take a larger GPU or MIG slice. On a shared GPU other pods have part of "
    "the memory: the GPU's page names them.",
)  # fmt: skip
CUDA_ECC = Saying(
    "cuda_ecc",
    words("uncorrectable ecc error", "cudaerroreccuncorrectable", "cuda_error_ecc_uncorrectable"),
    "A GPU of this node has a memory error that ECC could not correct.",
    "Look at the GPU's findings (Xid 48, 63, 64, 94, 95). Drain the node before the GPU is reset.",
)
CUDA_NVLINK = Saying(
    "cuda_nvlink",
    words("uncorrectable nvlink error", "cudaerrornvlinkuncorrectable", "cuda_error_nvlink_uncorrectable"),
    "A GPU of this node had an NVLink error that could not be corrected.",
    "Look at the GPU's findings (Xid 74) and at the switches' (SXid). Drain the node before the GPU is reset.",
)
GPU_RESET = Saying(
    "gpu_requires_reset",
    words("gpu requires reset", "cuda_error_.{0,20}requires_?reset"),
    "A GPU of this node works again only after a reset or a reboot.",
    "Look at the GPU's Xids and its recovery action. Drain the node, then reset the GPU (nvidia-smi -r) or reboot.",
)
RDMA_MEMORY = Saying(
    "rdma_memory",
    words(r"ibv_(reg_mr|create_\w+|reg_dmabuf_mr)\b.{0,60}(cannot allocate memory|failed)"),
    "The program may not lock memory for RDMA in its container.",
    "Give the container the capability IPC_LOCK, and look at the memlock limit of the container runtime (LimitMEMLOCK "
    "of its systemd unit).",
)
PEERS = Saying(
    "job_peers_missing",
    words(r"waiting for clients\. (?P<joined>\d+)/(?P<all>\d+) clients joined", "rendezvoustimeouterror"),
    "Other processes of its job did not join in time: {joined} of {all} did.",
    "Look at the job's other pods: one that is Pending or crashes keeps all waiting. Then at the network between them.",
)
PEER_LOST = Saying(
    "job_peer_lost",
    words("connection (reset|closed) by (remote )?peer", "rendezvousconnectionerror",
          "connection to the c10d store has failed"),
    "It lost its connection to another process: most often, to a pod of its job that ended first.",
    "Look which pod of the job ended or restarted first, and why: the others only lose it. Where none did, look at the "
    "network between their nodes (NetworkPolicy, firewall, MTU).",
)  # fmt: skip
PROGRAM_DISK = Saying(
    "program_disk_full",
    words(r"\[errno 28\]", "oserror: .{0,40}no space left on device"),
    "What the program writes to is full: a volume, an emptyDir with a limit, or the node's disk.",
    "The program's log names the file. Make the volume or the emptyDir's sizeLimit larger; the node's conditions say "
    "whether its disk is full.",
)
CUDA_FABRIC = Saying(
    "cuda_fabric",
    words("system not yet initialized", "cudaerrorsystemnotready", "cuda_error_system_not_ready"),
    "CUDA cannot use the GPUs of this node: they are not joined to the NVSwitch fabric.",
    "Look at the fabric manager: in the log of the driver pod, or systemctl status nvidia-fabricmanager on the node.",
    alone="On the node: systemctl status nvidia-fabricmanager. It must run, and be of exactly the driver's version.",
)
CUDA_MISMATCH = Saying(
    "cuda_mismatch",
    words("system has unsupported display driver", "cudaerrorsystemdrivermismatch"),
    "The driver's library in the container is of another version than the kernel's module.",
    "Delete the pod: it was started before the driver was changed. Where new pods say the same, reboot the node.",
)
CUDA_COMPATIBILITY = Saying(
    "cuda_forward",
    words("forward compatibility was attempted on non supported hw", "cudaerrorcompatnotsupportedondevice"),
    "The image brings CUDA's compatibility library, which this GPU or driver does not take.",
    "Take an image of an older CUDA, or a newer driver.",
)
CUDA_KERNEL = Saying(
    "cuda_no_kernel",
    words("no kernel image is available", "is not compatible with the current pytorch",
          "cudaerrornokernelimagefordevice", "device kernel image is invalid", "unsupported ptx version",
          "provided ptx was compiled with an unsupported toolchain"),
    "The program was not built for this GPU, or with a newer CUDA than the driver knows.",
    "Take a build for the GPU's compute capability, or a newer driver.",
)  # fmt: skip
CUDA_MPS = Saying(
    "cuda_mps",
    words("mps client failed to connect", r"cuda(_?error)_?mps\w+", "mps server is not ready",
          "mps server and the mps client"),
    "CUDA cannot use MPS in its container: the control daemon or its server does not answer on this node.",
    "Look at the MPS control daemon's pod on this node. The device plugin sets CUDA_MPS_PIPE_DIRECTORY where it shares "
    "by MPS: an image or a pod that sets it itself must not.",
)  # fmt: skip
SMI_FAILED = Saying(
    "smi_without_driver",
    words("couldn't communicate with the nvidia driver"),
    "nvidia-smi in its container does not reach the driver: the container has no GPU device, or no driver is loaded.",
    "Run nvidia-smi on the node. Where it works there, look whether the container asks for a GPU. Of a claim: the DRA "
    "driver may have started before /dev/nvidia0 was there. Delete its pod on this node, then this pod and its claim.",
)
NVML_REFUSED = Saying(
    "nvml_refused",
    words("initialize nvml: insufficient permissions", "nvml_error_no_permission"),
    "The program may not open the GPU devices in its container.",
    "Look at owner and mode of /dev/nvidia* on the node and at the user that the container runs as; with SELinux, at "
    "the container's type (container_use_devices). Then delete this pod.",
)
CUDA_XID = Saying(
    "cuda_xid",
    words(r"gpu (?P<gpu>[0-9a-f]{4,8}:[0-9a-f:.]+): detected critical xid", "critical xid error"),
    "The program saw a critical Xid of a GPU on this node: {gpu}.",
    "Look at the GPU's findings and at NVRM lines in the kernel's log: they have the Xid's number. Drain the node.",
)
KFD = Saying(
    "amd_kfd",
    words(r"/dev/kfd\b.{0,60}(permission denied|operation not permitted|no such file)"),
    "The program may not open AMD's device /dev/kfd.",
    "Look whether the container itself asks for amd.com/gpu. Where it does not run as root, it needs the node's group "
    "of /dev/kfd (render, or video): securityContext.supplementalGroups.",
)
HIP_NO_DEVICE = Saying(
    "hip_none_given",
    words("no hip gpus are available", "no rocm-capable device is detected", "hiperrornodevice",
          "tensile host: no devices found"),
    "The program finds no GPU of AMD's in its container.",
    "Look whether the container itself asks for amd.com/gpu, whether its ROCm knows this GPU, and at rocm-smi on the "
    "node.",
)  # fmt: skip
CUDA_NO_DEVICE = Saying(
    "cuda_none_given",
    words("no cuda-capable device is detected", "cudaerrornodevice", "no cuda gpus are available",
          "found no nvidia driver on your system", r"lib(cuda|nvidia-ml)\.so\S*: cannot open shared",
          "failed to infer device type", "no (nvidia|cuda) gpus? (was |were )?(found|detected|available)"),
    "The program finds no GPU in its container.",
    "Look whether the container itself asks for a GPU, and whether it starts with NVIDIA's runtime (runtimeClassName, "
    "or CDI); then at the GPU's findings.",
)  # fmt: skip
CUDA_ORDINAL = Saying(
    "cuda_ordinal",
    words("invalid device ordinal", "cudaerrorinvaliddevice"),
    "The program uses more GPUs than its container was given.",
    "Ask for as many as it uses. Of MIG slices CUDA shows one to a process.",
)
CUDA_BUSY = Saying(
    "cuda_devices_busy",
    words(r"cuda-capable devices?(\(s\))? (is/)?are busy or unavailable", "cudaerrordevicesunavailable"),
    "CUDA may not use the GPU: it is busy or unavailable.",
    "Look at nvidia-smi on the node: a compute mode that lets one process in, or MIG mode without slices.",
)
CUDA_ACCESS = Saying(
    "cuda_illegal_access",
    words(
        "illegal memory access",
        "cudaerrorillegaladdress",
        "unspecified launch failure",
        "cudaerrorlaunchfailure",
        "device-side assert",
    ),
    "A kernel of the program failed on the GPU: most often the program's own fault.",
    "Look whether other workloads fail on the same GPU, and for its Xids: only then is it the hardware.",
)
CUDA_UNKNOWN = Saying(
    "cuda_unknown",
    words(
        "cuda unknown error",
        "cuda driver initialization failed",
        "cudaerrorinitializationerror",
        "cudaerrorunknown",
        "cuda_error_unknown",
        "failed call to cuinit: unknown error",
        r"cuda error\W{0,2} ?unknown error",
    ),
    "CUDA does not start on this node, and does not say why.",
    "Look whether the module nvidia-uvm is loaded and /dev/nvidia-uvm is there, and in the kernel's log for NVRM and "
    "Xid lines.",
)
NCCL = Saying(
    "nccl_failed",
    words("nccl error", "nccl failure", r"nccl\w*exception", "watchdog caught collective operation timeout",
          r"nccl(unhandledcuda|system|internal|remote)error", r"unhandled (cuda|system) error",
          r"nccl_error_\w+"),
    "A collective operation of NCCL failed between the GPUs of its job.",
    "Look for the rank that failed first: the others only lose it. Then at the network, the NVLinks and the Xids of "
    "that rank's node; NCCL_DEBUG=INFO names the step.",
)  # fmt: skip
CUDA_LIBRARY = Saying(
    "cuda_library",
    words(r"(?P<library>cublas|cudnn|cusolver|cusparse|cufft)_status_(not_initialized|internal_error)",
          r"could not create (?P<other>cudnn|cublas) handle"),
    "The CUDA library {library}{other} of the program does not start: most often no memory is left on its GPU.",
    "Look what else holds the GPU's memory: on a shared GPU the GPU's page names other pods. A program that takes all "
    "memory at its start must leave some. Else take an image whose CUDA fits the driver.",
)  # fmt: skip
GPU_ERROR = Saying(
    "gpu_program_error",
    words(r"\b(?P<api>cuda|hip) error: (?P<error>[a-z][^:\n]{3,80}?)(?=[.:\n]|$)"),
    "The program ended with an error of {api}: {error}.",
    "Look whether other workloads fail so on this node alone: then the driver, or the GPU, is to blame. Else it is the "
    "program, or a library built for another release than the node's driver.",
)


def none_given(signs: Signs) -> Cause | None:
    """With what helps on a node of its vendor."""
    cause = CUDA_NO_DEVICE(signs)
    return replace(cause, action=HIP_NO_DEVICE.action) if cause and signs.is_of_vendor else cause


OF_CUDA: tuple[CauseRule, ...] = (
    PEERS, RDMA_MEMORY, PROGRAM_DISK, CUDA_NVLINK, GPU_RESET,
    SHARED_MEMORY, WORKER_KILLED, CUDA_XID, CUDA_MEMORY, CUDA_ECC, CUDA_FABRIC, CUDA_MPS, CUDA_MISMATCH,
    CUDA_COMPATIBILITY, CUDA_KERNEL, KFD, HIP_NO_DEVICE, none_given, CUDA_ORDINAL, CUDA_BUSY, CUDA_ACCESS,
    CUDA_UNKNOWN, CUDA_LIBRARY, NCCL, PEER_LOST, SMI_FAILED, NVML_REFUSED,
)  # fmt: skip

TAKEN = re.compile(
    r"enough resource: (?P<resource>[\w.-]+/[\w.-]+), requested: (?P<asks>\d+), used: (?P<used>\d+), "
    r"capacity: (?P<has>\d+)",
    re.IGNORECASE,
)
CUDA_TOO_OLD = Saying(
    "cuda_driver_old",
    words(
        "cuda driver version is insufficient", "cudaerrorinsufficientdriver", "nvidia driver on your system is too old"
    ),
    "The driver is older than the CUDA version that the program was built with.",
    "Take an image of an older CUDA, or a newer driver.",
)
INSUFFICIENT = re.compile(r"insufficient (?P<resource>[a-z0-9.-]+/[\w.-]+)", re.IGNORECASE)
NO_CPU = re.compile(r"insufficient (cpu|memory|ephemeral-storage|hugepages\S*)", re.IGNORECASE)
TAINTED = re.compile(r"untolerated taint", re.IGNORECASE)
SELECTED = re.compile(r"didn't match pod's node affinity|node\(s\) didn't match .*selector", re.IGNORECASE)
# kubernetes, pkg/scheduler/framework/types.go (FitError): each node counts once, by what rejected it first. Taints of
# node.kubernetes.io come and go with the node.
ALL_NODES = re.compile(r"0/(?P<all>\d+) nodes are available: (?P<reasons>.*?)(?:\. preemption:|$)", re.DOTALL)
FOR_GOOD = re.compile(
    r"(?P<nodes>\d+) node\(s\) (?:didn't match pod's node affinity|"
    r"had untolerated taint \{(?!node\.kubernetes\.io/))",
    re.IGNORECASE,
)
SCALES_UP = "TriggeredScaleUp"  # by the cluster autoscaler, for this pod
VOLUMES = re.compile(r"persistent ?volume|volume node affinity|max volume count|available disk", re.IGNORECASE)
CORDONED = re.compile(r"node\(s\) were unschedulable", re.IGNORECASE)
SPREAD = re.compile(r"topology spread|anti-affinity|match pod affinity", re.IGNORECASE)
PORTS = re.compile(r"free ports", re.IGNORECASE)
GANG = re.compile(r"\b(gang|pod ?groups?|min ?(member|available|count)|waiting for \d+ pods)\b", re.IGNORECASE)
CLAIMS = re.compile(r"cannot allocate all claims|resource ?claim|device class|dynamicresources", re.IGNORECASE)


def driver_too_old(signs: Signs) -> Cause | None:
    """By the node's label: a driver that runs the newest CUDA is too old for none."""
    cause = CUDA_TOO_OLD(signs)
    newest = max((each.driver for each in the_matrix().cuda), key=order)
    if cause is None or not signs.runs_version or is_older(signs.runs_version, newest):
        return cause
    return replace(
        cause,
        key="cuda_driver_not_given",
        sentence=f"CUDA calls the driver too old, and it is not: this node runs {signs.runs_version}. The container "
        "does not get the driver.",
        action="Look whether the container asks for a GPU, and whether it starts with NVIDIA's runtime "
        "(runtimeClassName, or CDI).",
    )


def all_taken(signs: Signs) -> Cause | None:
    """The kubelet counts again when a pod comes: what is held may have changed since the scheduler looked."""
    said = next((found for line in signs.everything_said() if (found := TAKEN.search(line))), None)
    if said is None or not is_gpu_resource(said["resource"]):
        return None
    asks, used, has = (int(said[name]) for name in ("asks", "used", "has"))
    asked = f"The kubelet refused it: it asks for {asks} of {said['resource']}"
    held = f"{asked}, and {used} of {has} were held when it came."
    helps = "Look who places pods there beside the scheduler: spec.nodeName, or a second scheduler."
    if has < asks:
        held = f"{asked}, and the node offered {has} when it came."
        helps = "Look at the device plugin of this node: after a restart of the kubelet it must register again."
    return Cause("gpus_all_held", Weight.WRONG, held, f"{helps} {AGAIN}", said.string.strip())


def waits_for_unprepare(signs: Signs) -> Cause | None:
    """It is being deleted, and its DRA driver is not there to give the devices back."""
    gone = NOT_REGISTERED(signs)
    if signs.pod is None or not signs.pod.is_leaving or gone is None:
        return None
    return replace(
        gone,
        key="dra_not_given_back",
        sentence="The pod is being deleted, and waits: its DRA driver has to give the devices back, and is not "
        "registered on this node.",
        action="Get the DRA driver's pod on this node to run: the kubelet then ends this pod by itself. Where the "
        "driver is gone for good, install it again, or reboot the node and delete the pod with --force.",
    )


def refused_by_kubelet(signs: Signs) -> Cause | None:
    """Whatever else the kubelet refused it for: `health.rules.pods_failing.BY_KUBELET` has what helps."""
    pod = signs.pod
    if pod is None or pod.phase != "Failed":
        return None
    said = ": ".join(part for part in (pod.reason, pod.message) if part)
    helps = next((action for reason, action in BY_KUBELET.items() if said.startswith(reason)), "")
    if not helps:
        return None
    return Cause("refused_by_kubelet", Weight.WRONG, f"The kubelet ended it: {said.partition(':')[0]}.", helps, said)


def out_of_memory(signs: Signs) -> Cause | None:
    pod = signs.pod
    if pod is None or not (pod.reason == "OOMKilled" or "OOMKilled" in pod.message):
        return None
    return Cause(
        "host_memory",
        Weight.WRONG,
        f"{pod.of_it} was killed: it used more of the node's memory than its limit. That is no memory of a GPU.",
        "Raise its memory limit. What it writes to /dev/shm and what data loaders hold counts.",
    )


def waits_for_domain(signs: Signs) -> Cause | None:
    """With what its daemon on this node says."""
    cause = DOMAIN_NOT_READY(signs)
    behind = signs.behind
    if cause is None or behind is None:
        return cause
    sentence = f"It waits for its ComputeDomain, whose daemon is not ready on this node. {behind.sentence}"
    return replace(
        cause, sentence=sentence, action=_of_other("its daemon", behind) or cause.action, said=behind.said or cause.said
    )


def waits_for_claim(signs: Signs) -> Cause | None:
    """A claim of it has no device yet."""
    pod = signs.pod
    waiting_for = next((claim for claim in signs.claims if not claim.is_allocated), None)
    if pod is None or signs.is_placed or waiting_for is None or (pod.message and not CLAIMS.search(pod.message)):
        return None
    return _unpublished(signs, waiting_for) or Cause(
        "claim_waits",
        Weight.WAITING,
        f"It waits for its ResourceClaim {waiting_for.name}: no free device fits the claim.",
        f"Devices of {waiting_for.driver or 'its class'} are published: others hold them, or the claim's selectors fit "
        "none. The cluster's page has the DeviceClasses.",
        pod.message,
    )


def _unpublished(signs: Signs, claim: ClaimSigns) -> Cause | None:
    if claim.is_published or not claim.driver:
        return None
    sentence = f"It waits for its ResourceClaim {claim.name}: no driver publishes devices of {claim.driver}."
    action = f"Look at the DRA driver's pods: without a ResourceSlice of {claim.driver} nothing can be allocated."
    said = signs.pod.message if signs.pod else ""
    if behind := signs.behind:
        sentence = f"{sentence} The DRA driver: {_uncapitalised(behind.sentence)}"
        action = _of_other("the DRA driver", behind) or action
        said = behind.said or said
    return Cause("claim_unpublished", Weight.WRONG, sentence, action, said)


def _of_other(whose: str, behind: Cause) -> str:
    """What to do about another pod. Blank: nothing is known."""
    return f"For the pod of {whose}: {_uncapitalised(behind.action)}" if behind.action else ""


def _uncapitalised(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def gated(signs: Signs) -> Cause | None:
    pod = signs.pod
    if pod is None or pod.reason != "SchedulingGated":
        return None
    return Cause(
        "gated",
        Weight.WAITING,
        "A scheduling gate holds it: its queue has not admitted it yet.",
        "spec.schedulingGates names the gate: kueue.x-k8s.io/* is Kueue's, whose Workload says what it waits for.",
    )


def waits_for_gang(signs: Signs) -> Cause | None:
    pod = signs.pod
    if pod is None or signs.is_placed:
        return None
    said = next((line for line in signs.everything_said() if GANG.search(line)), "")
    if not said:
        return None
    return Cause(
        "gang_waits",
        Weight.WAITING,
        "It waits for its group: all its pods are placed at once, or none.",
        "The line says how many are missing, and what for. The group needs room for all of them.",
        said,
    )


def matches_no_node(signs: Signs) -> Cause | None:
    """By the scheduler's own count, which knows of every node: what is free where decides nothing then."""
    pod = signs.pod
    if pod is None or signs.is_placed or not SELECTED.search(pod.message):
        return None
    counted = ALL_NODES.search(pod.message)
    if counted is None or any(event.reason == SCALES_UP for event in pod.events):
        return None
    rejected = sum(int(found["nodes"]) for found in FOR_GOOD.finditer(counted["reasons"]))
    if rejected < int(counted["all"]):
        return None
    return Cause(
        "matches_no_node",
        Weight.WRONG,
        "No node matches its node selector or affinity.",
        "Compare both with the labels of your nodes, such as nvidia.com/gpu.product. It does not start before its "
        "template is changed, or such a node is added.",
        pod.message,
    )


def finds_no_room(signs: Signs) -> Cause | None:
    """By what nodes have free: a sum over nodes is no room for one pod."""
    pod, room = signs.pod, signs.room
    if pod is None or room is None or signs.is_placed or room.most >= room.asks:
        return None
    asks = f"It asks for {room.spell(room.asks)} on one node"
    if not room.largest:
        return Cause(
            "offered_by_no_node", Weight.WRONG, f"It asks for {room.spell(room.asks)}, and no node offers any.",
            _where_it_may_come_from(room.noun), pod.message,
        )  # fmt: skip
    if room.largest < room.asks:
        return Cause(
            "larger_than_any_node", Weight.WRONG,
            f"{asks}, and no node has so many: the largest has {room.largest}.",
            "Ask for fewer in its template, or spread the work over several pods.", pod.message,
        )  # fmt: skip
    if room.free < room.asks:
        return Cause(
            "no_room", Weight.WAITING, f"{asks}: {room.free_in_words}.",
            "It comes once others end, or nodes are added.", pod.message,
        )  # fmt: skip
    return Cause(
        "fragmented",
        Weight.WAITING,
        f"{asks}: {room.free_in_words}.",
        "The free ones are in pieces: it comes once others on one node end. Where it must not wait, move the pods of "
        f"{room.node or 'the node with the most free'} elsewhere.",
        pod.message,
    )


def _where_it_may_come_from(noun: str) -> str:
    if profile_in(noun):
        return (
            "No GPU is cut so now. Look at nvidia.com/mig.config of the nodes and whether its state is failed, or "
            "ask for a profile that nodes offer: the strategy single offers slices as nvidia.com/gpu."
        )
    return (
        "Look at the nodes that should: whether their device plugin is ready, whether a taint keeps it or node feature "
        "discovery away, and whether they are cordoned. A sharing configuration may offer it by another name."
    )


def fits_no_node(signs: Signs) -> Cause | None:
    pod = signs.pod
    if pod is None or signs.is_placed or pod.reason != "Unschedulable":
        return None
    found = [
        word
        for pattern, word in (
            (NO_CPU, "CPU, memory or disk"),
            (TAINTED, "a taint that it does not tolerate"),
            (SELECTED, "its node selector or affinity"),
            (INSUFFICIENT, "a resource that is taken"),
            (VOLUMES, "a volume of it"),
            (CORDONED, "nodes that are cordoned"),
            (SPREAD, "where its other pods are"),
            (PORTS, "a port of the node that is taken"),
        )
        if pattern.search(pod.message)
    ]
    why = f": the scheduler names {', '.join(found)}" if found else ""
    return Cause(
        "fits_no_node",
        Weight.WAITING,
        f"No node takes it{why}.",
        "Compare what its template asks for with the nodes that have such GPUs.",
        pod.message,
    )


def crashed(signs: Signs) -> Cause | None:
    """It left a word, or none. A container that never started has no log."""
    pod = signs.pod
    if pod is None or not (pod.reason in CRASHES or pod.reason == "OOMKilled"):
        return None
    namespace, _, name = pod.name.partition("/")
    previous = " --previous" if pod.restarts else ""
    asked = f"kubectl -n {namespace} logs {name} -c {pod.container or 'CONTAINER'}{previous}"
    if has_no_log(pod):
        said = pod.last_words or pod.told_by_event
        return Cause("never_started", Weight.WRONG, f"{pod.of_it} cannot be started ({pod.reason}).",
                     OF_THE_RUNTIME if said else describe(pod), said or pod.message)  # fmt: skip
    return Cause(
        "tenant_crashed",
        Weight.WRONG,
        f"{pod.of_it} keeps crashing ({pod.reason}).",
        f"Read its log: {asked}",
        pod.last_words or pod.told_by_event or pod.message,
    )


def failed(signs: Signs) -> Cause | None:
    """It ended for good."""
    pod = signs.pod
    if pod is None or pod.phase != "Failed":
        return None
    words_of_it = pod.last_words or (pod.message and ": ".join(filter(None, (pod.reason, pod.message))))
    said = words_of_it or pod.told_by_event
    namespace, _, name = pod.name.partition("/")
    action = f"kubectl -n {namespace} logs {name} has its last lines."
    if has_no_log(pod):
        action = OF_THE_RUNTIME if said else describe(pod)
    return Cause("tenant_failed", Weight.WRONG, "It failed, and is not started again.", action, said or pod.reason)


def being_created(signs: Signs) -> Cause | None:
    """Its node took it, and no container runs."""
    pod = signs.pod
    if pod is None or pod.phase != "Pending" or not signs.is_placed:
        return None
    said = pod.events[0].message if pod.events else ""
    if said:
        sentence = "Its containers do not start: the kubelet names a trouble."
        return Cause("not_started", Weight.WRONG, sentence, "The line names the step.", said)
    if not pod.is_overdue:
        return Cause("being_created", Weight.WAITING, "Its containers are being created.")
    return Cause(
        "being_created",
        Weight.WAITING,
        "Its containers are still being created, and no Event says why.",
        "A large image takes long to pull. kubectl describe of the pod shows the step.",
    )


def kept_waiting(signs: Signs) -> Cause | None:
    """It has no node, and only an Event says why: of another scheduler, or of a controller before it."""
    pod = signs.pod
    if pod is None or pod.phase != "Pending" or signs.is_placed or pod.reason or not pod.told_by_event:
        return None
    sentence = "It waits for a node: an Event says what hinders it."
    return Cause("kept_waiting", Weight.WAITING, sentence, "spec.schedulerName names who places it: look at its log.",
                 pod.told_by_event)  # fmt: skip


def not_ready(signs: Signs) -> Cause | None:
    """It runs, and its probes say that it cannot be used."""
    pod = signs.pod
    if pod is None or pod.phase != "Running":
        return None
    said = next((event.message for event in pod.events if event.reason == "Unhealthy"), "")
    return Cause("tenant_not_ready", Weight.WAITING, "It runs and is not ready.", "", said) if said else None


KUBELET: tuple[CauseRule, ...] = (
    all_taken,
    SHARED_TOO_LARGE,
    device_plugin.GPU_LOST,
    NOT_HEALTHY,
    NONE_FREE,
    UNREGISTERED,
    NOT_THE_POD,
    PLUGIN_WENT,
    PLUGIN_FAILED,
)
OF_DRA: tuple[CauseRule, ...] = (
    waits_for_domain, DOMAIN_NAMESPACE, MIG_CUT, NOT_REGISTERED, CLAIM_TO_COME, NO_TEMPLATE, NO_CLASS, EMPTY_DEVICE,
    HELD_BY_CLAIM, TIME_SLICE, PREPARE,
)  # fmt: skip
# By words: what the pod says of itself, then what Events say of it.
BY_WORDS: tuple[CauseRule, ...] = (
    *KUBELET,
    *images.RULES,
    CDI_MANAGEMENT,
    CDI_OF_CLAIM,
    *OF_DRA,
    GPUSHARE,
    UNKNOWN_DEVICE,
    *runtime.FIRST,
    *(rule for rule in runtime.RULES if rule not in (runtime.SANDBOX, runtime.MOUNT)),
    configuration.NOT_SHARED,
    configuration.NO_NODE,
    device_plugin.DEVICES_TAKEN,
    *OF_CUDA,
    driver_too_old,
    GPU_ERROR,
    out_of_memory,
    cluster.OTHER_MACHINE,
    runtime.HOOK,
    HAMI,
    HAMI_NO_NODE,
    GPU_QUOTA,
    MULTI_ATTACH,
    MOUNT,
    runtime.SANDBOX,
    runtime.NO_RUNC,
    cluster.DISK_FULL,
)
FIRST: tuple[CauseRule, ...] = (waits_for_unprepare, waiting.leaving, waiting.node_silent, gated)
PLACING: tuple[CauseRule, ...] = (waits_for_claim, matches_no_node, finds_no_room, waits_for_gang, fits_no_node)
LAST: tuple[CauseRule, ...] = (
    *configuration.RULES, refused_by_kubelet, failed, crashed, being_created, kept_waiting, ended, not_ready,
)  # fmt: skip


def why_waits(signs: Signs) -> Cause | None:
    """Why a tenant's pod does not run. None: nothing says that it should not be as it is.

    What the pod says of itself comes before what Events say of it: those may be about what is over by now.
    """
    if signs.pod is None:
        return None
    alone = replace(signs, pod=replace(signs.pod, events=()))
    turns = ((FIRST, signs), (BY_WORDS, alone), (BY_WORDS, signs), (PLACING, signs), (LAST, signs))
    return next((cause for rules, given in turns for rule in rules if (cause := rule(given))), None)
