package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// cluster is a whole kube-scheduler with the default profile. It never runs: its cache is filled,
// and its plugins are asked.
type cluster struct {
	profile   framework.Framework
	cache     internalcache.Cache
	snapshot  *internalcache.Snapshot
	exchanged *exchanged
	stop      context.CancelFunc
}

// newCluster starts a scheduler in a cluster that has these objects, neither nodes nor pods.
func newCluster(ctx context.Context, objects []runtime.Object) (*cluster, error) {
	ctx, stop := context.WithCancel(ctx)
	client := fake.NewClientset(objects...)
	factory := scheduler.NewInformerFactory(client, 0)
	recorder := func(string) events.EventRecorderLogger { return events.NewFakeRecorder(0) }
	made, err := scheduler.New(ctx, client, factory, nil, profile.RecorderFactory(recorder))
	if err != nil {
		stop()
		return nil, err
	}
	const name = v1.DefaultSchedulerName
	snapshot, ok := made.Profiles[name].SnapshotSharedLister().(*internalcache.Snapshot)
	if !ok {
		stop()
		return nil, errors.New("the snapshot of the profile is of another type")
	}
	exchanged := exchangedOf(factory)
	factory.StartWithContext(ctx)
	factory.WaitForCacheSync(ctx.Done())
	return &cluster{made.Profiles[name], made.Cache, snapshot, exchanged, stop}, nil
}

func judge(ctx context.Context, empty *cluster, asked *testCase) (answer, error) {
	pod, refusals, err := admit(ctx, asked.Pod)
	if err != nil || refusals != nil {
		return answer{Refused: refusals}, err
	}
	nodes, err := decodeAll[v1.Node](raw(asked.Nodes))
	if err != nil {
		return answer{}, err
	}
	pods, err := decodeAll[v1.Pod](raw(asked.Pods))
	if err != nil {
		return answer{}, err
	}
	for _, bound := range pods {
		named("Pod", &bound.ObjectMeta)
	}
	objects, err := decodeObjects(asked.Objects)
	if err != nil {
		return answer{}, err
	}
	in, err := clusterOf(ctx, empty, asked, objects)
	if err != nil {
		return answer{}, err
	}
	if in != empty {
		defer in.stop()
	}
	verdicts, scores, err := in.verdicts(ctx, pod, pods, nodes)
	return answer{Nodes: verdicts, Scores: scores, Stored: &stored{nodes, pods, objects, pod}}, err
}

// clusterOf gives the cluster for a case. Starting one takes milliseconds, so that cases share the
// empty one, as far as they have no objects but nodes, pods and those that can be exchanged.
func clusterOf(
	ctx context.Context, empty *cluster, asked *testCase, objects []runtime.Object,
) (*cluster, error) {
	namespaces, err := decodeAll[v1.Namespace](raw(asked.Namespaces))
	if err != nil {
		return nil, err
	}
	all := slices.Clone(objects)
	for _, namespace := range namespaces {
		all = append(all, namespace)
	}
	if done, err := empty.exchanged.replace(all); done || err != nil {
		return empty, err
	}
	return newCluster(ctx, all)
}

// verdicts asks the plugins about every node, and for the scores of those that fit, and takes nodes
// and pods out of the cache again.
func (c *cluster) verdicts(
	ctx context.Context, pod *v1.Pod, pods []*v1.Pod, nodes []*v1.Node,
) (map[string]string, map[string]scores, error) {
	logger := klog.Background()
	known := sets.New[string]()
	for _, node := range nodes {
		known.Insert(node.Name)
		c.cache.AddNode(logger, node)
	}
	for _, node := range nodes {
		defer func() { _ = c.cache.RemoveNode(logger, node) }()
	}
	for _, bound := range pods {
		// The scheduler does not watch pods that have ended.
		ended := bound.Status.Phase == v1.PodSucceeded || bound.Status.Phase == v1.PodFailed
		if ended || bound.Spec.NodeName == "" {
			continue
		}
		if err := c.cache.AddPod(logger, bound); err != nil {
			return nil, nil, err
		}
		defer func() { _ = c.cache.RemovePod(logger, bound) }()
	}
	if err := c.cache.UpdateSnapshot(logger, c.snapshot); err != nil {
		return nil, nil, err
	}
	state := framework.NewCycleState()
	result, status, by := c.profile.RunPreFilterPlugins(ctx, state, pod)
	verdicts := make(map[string]string, len(nodes))
	for name := range known {
		switch {
		case !status.IsSuccess():
			verdicts[name] = words(status)
		case !result.AllNodes() && !result.NodeNames.Has(name):
			verdicts[name] = fmt.Sprintf("%v: is not among the nodes that it names", sets.List(by))
		default:
			info, err := c.snapshot.Get(name)
			if err != nil {
				return nil, nil, err
			}
			verdicts[name] = words(c.profile.RunFilterPlugins(ctx, state, pod, info))
		}
	}
	scores, err := c.scores(ctx, state, pod, verdicts)
	return verdicts, scores, err
}

// scores asks the plugins that read what pods prefer how they score the nodes that fit. There are no
// scores where a plugin fails: the scheduler then binds nothing.
func (c *cluster) scores(
	ctx context.Context, state fwk.CycleState, pod *v1.Pod, verdicts map[string]string,
) (map[string]scores, error) {
	var fitting []fwk.NodeInfo
	for _, name := range slices.Sorted(maps.Keys(verdicts)) {
		if verdicts[name] != "" {
			continue
		}
		info, err := c.snapshot.Get(name)
		if err != nil {
			return nil, err
		}
		fitting = append(fitting, info)
	}
	if len(fitting) == 0 || !c.profile.RunPreScorePlugins(ctx, state, pod, fitting).IsSuccess() {
		return nil, nil
	}
	scored, status := c.profile.RunScorePlugins(ctx, state, pod, fitting)
	if !status.IsSuccess() {
		return nil, nil
	}
	byNode := make(map[string]scores, len(scored))
	for _, node := range scored {
		byPlugin := scores{}
		for _, score := range node.Scores {
			if weight := weights[score.Name]; weight > 0 {
				byPlugin[score.Name] = score.Score / weight
			}
		}
		byNode[node.Name] = byPlugin
	}
	return byNode, nil
}

// scores has a score from 0 to 100 by plugin; a plugin that has nothing to say is missing.
type scores map[string]int64

// weights has the plugins that read what pods prefer, with their weights in the default profile, by
// which their scores come multiplied.
var weights = map[string]int64{
	names.TaintToleration:   3,
	names.NodeAffinity:      2,
	names.PodTopologySpread: 2,
	names.InterPodAffinity:  2,
	names.ImageLocality:     1,
}

// words gives the plugin that refuses, and why; an error of a plugin refuses, too, because the
// scheduler then binds nothing.
func words(status *fwk.Status) string {
	if status.IsSuccess() {
		return ""
	}
	reasons := slices.Clone(status.Reasons())
	if err := status.AsError(); len(reasons) == 0 && err != nil {
		reasons = append(reasons, err.Error())
	}
	return fmt.Sprintf("%s: %s", status.Plugin(), reasons)
}

func raw(texts []json.RawMessage) [][]byte {
	list := make([][]byte, 0, len(texts))
	for _, text := range texts {
		list = append(list, text)
	}
	return list
}
