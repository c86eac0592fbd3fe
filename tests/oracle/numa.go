package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	_ "unsafe" // for go:linkname

	cadvisorapi "github.com/google/cadvisor/info/v1"
	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/utils/cpuset"
)

// numaCase is a node with a kubelet, to which pods come one after the other.
type numaCase struct {
	Policy string     `json:"policy"`
	Scope  string     `json:"scope"`
	Cells  []numaCell `json:"cells"`
	// Static says whether the CPU manager gives out CPUs.
	Static bool              `json:"static"`
	Pods   []json.RawMessage `json:"pods"`
}

// numaCell is a NUMA node: its CPUs, and its devices by resource.
type numaCell struct {
	CPUs    int            `json:"cpus"`
	Devices map[string]int `json:"devices"`
}

// numaStep says what became of one pod, and what each NUMA node had free before it came.
type numaStep struct {
	Free    []map[string]int `json:"free"`
	Verdict string           `json:"verdict"`
	// Split says whether a container before the last got something from several NUMA nodes.
	Split bool `json:"split"`
}

//go:linkname newDeviceManager k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newDeviceManager(
	klog.Logger, string, []cadvisorapi.Node, topologymanager.Store,
) (*devicemanager.ManagerImpl, error)

// cpuProvider is the CPU manager with its static policy, as far as pods are admitted by it.
type cpuProvider struct {
	policy cpumanager.Policy
	state  state.State
}

func (p *cpuProvider) GetTopologyHints(
	pod *v1.Pod, container *v1.Container,
) map[string][]topologymanager.TopologyHint {
	return p.policy.GetTopologyHints(klog.TODO(), p.state, pod, container)
}

func (p *cpuProvider) GetPodTopologyHints(pod *v1.Pod) map[string][]topologymanager.TopologyHint {
	return p.policy.GetPodTopologyHints(klog.TODO(), p.state, pod)
}

func (p *cpuProvider) AllocatePod(pod *v1.Pod) error {
	return p.policy.AllocatePod(klog.TODO(), p.state, pod)
}

func (p *cpuProvider) Allocate(pod *v1.Pod, container *v1.Container) error {
	return p.policy.Allocate(klog.TODO(), p.state, pod, container)
}

// devicePlugin gives out every device that it is asked for.
type devicePlugin struct {
	pluginapi.DevicePluginClient
	resource string
}

func (p devicePlugin) API() pluginapi.DevicePluginClient { return p }
func (p devicePlugin) Resource() string                  { return p.resource }
func (p devicePlugin) SocketPath() string                { return "" }

func (p devicePlugin) GetDevicePluginOptions(
	context.Context, *pluginapi.Empty, ...grpc.CallOption,
) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{}, nil
}

func (p devicePlugin) Allocate(
	context.Context, *pluginapi.AllocateRequest, ...grpc.CallOption,
) (*pluginapi.AllocateResponse, error) {
	return &pluginapi.AllocateResponse{
		ContainerResponses: []*pluginapi.ContainerAllocateResponse{{}},
	}, nil
}

// kubelet is what of a kubelet admits pods by NUMA nodes.
type kubelet struct {
	manager topologymanager.Manager
	devices *devicemanager.ManagerImpl
	cpus    *cpuProvider
	cellOf  topology.CPUDetails
	active  []*v1.Pod
}

// judgeNuma has pods come to a node one after the other. Those that are admitted stay.
func judgeNuma(ctx context.Context, asked *numaCase) ([]numaStep, error) {
	folder, err := os.MkdirTemp("", "oracle")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	node, err := newKubelet(ctx, asked, folder)
	if err != nil {
		return nil, err
	}
	defer node.devices.Stop(klog.TODO())
	var steps []numaStep
	for index, text := range asked.Pods {
		pod, err := decode[v1.Pod](text)
		if err != nil {
			return nil, fmt.Errorf("pod %d: %w", index, err)
		}
		pod.UID = types.UID(fmt.Sprintf("pod-%d", index))
		step := numaStep{Free: node.free(asked)}
		node.active = append(node.active, pod)
		result := node.manager.Admit(&lifecycle.PodAdmitAttributes{Pod: pod})
		if !result.Admit {
			step.Verdict = result.Reason
			node.active = node.active[:len(node.active)-1]
			node.forget(pod)
		}
		step.Split = node.isSplit(pod)
		steps = append(steps, step)
	}
	return steps, nil
}

func newKubelet(ctx context.Context, asked *numaCase, folder string) (*kubelet, error) {
	var nodes []cadvisorapi.Node
	cpus := topology.CPUDetails{}
	for id, cell := range asked.Cells {
		nodes = append(nodes, cadvisorapi.Node{Id: id})
		for range cell.CPUs {
			cpu := len(cpus)
			cpus[cpu] = topology.CPUInfo{NUMANodeID: id, SocketID: id, CoreID: cpu}
		}
	}
	manager, err := topologymanager.NewManager(nodes, asked.Policy, asked.Scope, nil)
	if err != nil {
		return nil, err
	}
	made := &kubelet{manager: manager, cellOf: cpus}
	logger := klog.TODO()
	socket := filepath.Join(folder, "kubelet.sock")
	made.devices, err = newDeviceManager(logger, socket, nodes, manager)
	if err != nil {
		return nil, err
	}
	active := func() []*v1.Pod { return made.active }
	err = made.devices.Start(
		logger, active, allReady{}, containermap.NewContainerMap(), sets.New[string]())
	if err != nil {
		return nil, err
	}
	if err := made.plugIn(ctx, asked); err != nil {
		return nil, err
	}
	manager.AddHintProvider(logger, made.devices)
	if !asked.Static {
		return made, nil
	}
	count := len(cpus)
	described := &topology.CPUTopology{
		NumCPUs: count, NumCores: count, NumSockets: len(nodes), NumNUMANodes: len(nodes),
		CPUDetails: cpus,
	}
	policy, err := cpumanager.NewStaticPolicy(logger, described, 0, cpuset.New(), manager, nil)
	if err != nil {
		return nil, err
	}
	made.cpus = &cpuProvider{policy, state.NewMemoryState(logger)}
	manager.AddHintProvider(logger, made.cpus)
	return made, policy.Start(logger, made.cpus.state)
}

// allReady says that the kubelet knows all its pods.
type allReady struct{}

func (allReady) AddSource(string) {}
func (allReady) AllReady() bool   { return true }

// plugIn has a device plugin for each resource.
func (k *kubelet) plugIn(ctx context.Context, asked *numaCase) error {
	devices := map[string][]*pluginapi.Device{}
	for id, cell := range asked.Cells {
		for resource, count := range cell.Devices {
			for number := range count {
				devices[resource] = append(devices[resource], &pluginapi.Device{
					ID: fmt.Sprintf("%d-%d", id, number), Health: pluginapi.Healthy,
					Topology: &pluginapi.TopologyInfo{Nodes: []*pluginapi.NUMANode{{ID: int64(id)}}},
				})
			}
		}
	}
	for resource, list := range devices {
		if err := k.devices.PluginConnected(ctx, resource, devicePlugin{resource: resource}); err != nil {
			return err
		}
		list := &pluginapi.ListAndWatchResponse{Devices: list}
		k.devices.PluginListAndWatchReceiver(klog.TODO(), resource, list)
	}
	return nil
}

func containersOf(pod *v1.Pod) []v1.Container {
	return slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
}

// forget gives back what a pod got before it was rejected.
func (k *kubelet) forget(pod *v1.Pod) {
	k.devices.UpdateAllocatedDevices()
	if k.cpus == nil {
		return
	}
	for _, container := range containersOf(pod) {
		k.cpus.policy.RemoveContainer(klog.TODO(), k.cpus.state, string(pod.UID), container.Name)
	}
}

// isSplit says whether a container of a pod before the last one has a resource of several NUMA
// nodes. How much of each, the kubelet leaves to chance: it takes devices in the order of a Go map.
func (k *kubelet) isSplit(pod *v1.Pod) bool {
	containers := containersOf(pod)
	for _, container := range containers[:len(containers)-1] {
		for _, given := range k.devices.GetDevices(string(pod.UID), container.Name) {
			nodes := sets.New[int64]()
			for _, device := range given {
				nodes.Insert(device.Topology.Nodes[0].ID)
			}
			if nodes.Len() > 1 {
				return true
			}
		}
		if k.cpus == nil {
			continue
		}
		own, _ := k.cpus.state.GetCPUSet(string(pod.UID), container.Name)
		if k.cellOf.KeepOnly(own).NUMANodes().Size() > 1 {
			return true
		}
	}
	return false
}

// free counts what each NUMA node has free, as an exporter would tell.
func (k *kubelet) free(asked *numaCase) []map[string]int {
	var free []map[string]int
	for _, cell := range asked.Cells {
		of := map[string]int{}
		for resource, count := range cell.Devices {
			of[resource] = count
		}
		if k.cpus != nil {
			of["cpu"] = cell.CPUs
		}
		free = append(free, of)
	}
	for _, pod := range k.active {
		// An init container and those that follow share devices and CPUs.
		devices := map[string]sets.Set[string]{}
		cpus := cpuset.New()
		for _, container := range containersOf(pod) {
			for resource, given := range k.devices.GetDevices(string(pod.UID), container.Name) {
				for id, device := range given {
					if devices[resource] == nil {
						devices[resource] = sets.New[string]()
					}
					if !devices[resource].Has(id) {
						devices[resource].Insert(id)
						free[device.Topology.Nodes[0].ID][resource]--
					}
				}
			}
			if k.cpus == nil {
				continue
			}
			if own, ok := k.cpus.state.GetCPUSet(string(pod.UID), container.Name); ok {
				cpus = cpus.Union(own)
			}
		}
		for _, cpu := range cpus.List() {
			free[k.cellOf[cpu].NUMANodeID]["cpu"]--
		}
	}
	return free
}
