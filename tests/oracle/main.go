// Command oracle says of pods what Kubernetes itself says: whether the API server lets them in, on
// which nodes kube-scheduler would let them run, and which of them a kubelet would reject because
// it could not align them on NUMA nodes.
//
// It reads cases from standard input, a JSON object on each line, and answers each with one line,
// in their order. Nothing of Kubernetes is written down here again: defaults, the strategy of pods
// and validation are the API server's own code, and the verdicts come from the plugins of the
// default profile, with the default feature gates.
//
//	case     {"nodes": [Node], "pods": [Pod, on its node], "namespaces": [Namespace],
//	          "objects": [objects of any other kind], "pod": Pod}
//	refused  {"refused": [{"field": "spec.tolerations[0].operator", "message": "..."}]}
//	judged   {"nodes": {"n1": "", "n2": "NodeAffinity: ..."},
//	          "scores": {"n1": {"TaintToleration": 100}}, "stored": {...}}
//	broken   {"error": "..."}
//
// A case about NUMA nodes has pods come to one node, one after the other:
//
//	case     {"numa": {"policy": "restricted", "scope": "pod", "static": true, "pods": [Pod],
//	          "cells": [{"cpus": 8, "devices": {"example.com/nic": 2}}]}}
//	judged   {"steps": [{"free": [{"cpu": 8, "example.com/nic": 2}], "verdict": ""}]}
//
// The Topology Manager, the device manager and the static policy of the CPU manager are the
// kubelet's own.
//
// An empty verdict means that the pod may run on the node. `stored` has the case's nodes, pods,
// objects and pod as the API server would hold them. A case is broken if it is not of this form.
//
// With -lie-every=N each Nth answer is a lie, so that it can be shown that a comparison finds
// differences.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// testCase is one line of input. Objects are decoded as the API server decodes them, later.
type testCase struct {
	Nodes      []json.RawMessage `json:"nodes"`
	Pods       []json.RawMessage `json:"pods"`
	Namespaces []json.RawMessage `json:"namespaces"`
	Objects    []json.RawMessage `json:"objects"`
	Pod        json.RawMessage   `json:"pod"`
	Numa       *numaCase         `json:"numa"`
}

// answer is one line of output.
type answer struct {
	Refused []refusal         `json:"refused,omitempty"`
	Nodes   map[string]string `json:"nodes,omitempty"`
	Scores  map[string]scores `json:"scores,omitempty"`
	Stored  *stored           `json:"stored,omitempty"`
	Steps   []numaStep        `json:"steps,omitempty"`
	Error   string            `json:"error,omitempty"`
}

// refusal is one mistake that the API server finds in the pod. The field is empty where the object
// cannot be decoded: decoders do not name the field in a form that can be compared.
type refusal struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

func main() {
	lieEvery := flag.Int("lie-every", 0, "answer each Nth case with a lie; 0: never")
	flag.Parse()
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	if err := run(context.Background(), os.Stdin, os.Stdout, *lieEvery); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, in io.Reader, out io.Writer, lieEvery int) error {
	empty, err := newCluster(ctx, nil)
	if err != nil {
		return err
	}
	lines := bufio.NewReaderSize(in, 1<<20)
	answers := bufio.NewWriterSize(out, 1<<20)
	encoder := json.NewEncoder(answers)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF && len(line) == 0 {
			return answers.Flush()
		} else if err != nil && err != io.EOF {
			return err
		}
		said := answerTo(ctx, empty, line)
		if lieEvery > 0 && number%lieEvery == 0 {
			lie(&said, number/lieEvery)
		}
		if err := encoder.Encode(said); err != nil {
			return err
		}
		// Whoever asks one question at a time waits for the answer.
		if lines.Buffered() == 0 {
			if err := answers.Flush(); err != nil {
				return err
			}
		}
	}
}

func answerTo(ctx context.Context, empty *cluster, line []byte) answer {
	var asked testCase
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Error: err.Error()}
	}
	if asked.Numa != nil {
		steps, err := judgeNuma(ctx, asked.Numa)
		if err != nil {
			return answer{Error: err.Error()}
		}
		return answer{Steps: steps}
	}
	said, err := judge(ctx, empty, &asked)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return said
}

// lie turns an answer into another one that is not true: what is refused is let in everywhere, and
// of what is let in one node says the opposite, or all is refused, or a plugin gives one node another
// score.
func lie(said *answer, count int) {
	first := ""
	if said.Stored != nil {
		first = firstReady(said.Stored.Nodes)
	}
	switch {
	case said.Error != "":
	case said.Steps != nil:
		lieAboutNuma(&said.Steps[count%len(said.Steps)])
	case said.Refused != nil:
		*said = answer{Nodes: map[string]string{}}
	case count%3 == 0 && len(said.Scores) > 0 && !slices.ContainsFunc(said.Stored.Nodes, isLost):
		lieAboutScores(said.Scores, count/3)
	case count%2 == 0 || first == "":
		*said = answer{Refused: []refusal{{Field: "spec.lie", Message: "is a lie"}}}
	case said.Nodes[first] == "":
		said.Nodes[first] = "Lie: the pod fits"
	default:
		said.Nodes[first] = ""
	}
}

// lieAboutScores has one plugin, the next one at each lie, give the first node by name another score.
func lieAboutScores(byNode map[string]scores, count int) {
	plugins := slices.Sorted(maps.Keys(weights))
	plugin := plugins[count%len(plugins)]
	first := byNode[slices.Sorted(maps.Keys(byNode))[0]]
	first[plugin] = (first[plugin] + 50) % 100
}

// lieAboutNuma has a pod rejected that was admitted, or the other way round.
func lieAboutNuma(step *numaStep) {
	if step.Verdict == "" {
		step.Verdict = "Lie"
	} else {
		step.Verdict = ""
	}
}

// isLost says whether a node is not ready. Of such nodes the comparison may expect that the two
// differ, and it then compares no scores.
func isLost(node *v1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(is v1.NodeCondition) bool {
		return is.Type == v1.NodeReady && is.Status != v1.ConditionTrue
	})
}

// firstReady gives the first node that is ready, by name.
func firstReady(nodes []*v1.Node) string {
	first := ""
	for _, node := range nodes {
		if !isLost(node) && (first == "" || node.Name < first) {
			first = node.Name
		}
	}
	return first
}
