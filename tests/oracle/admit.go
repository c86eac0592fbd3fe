package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kjson "k8s.io/apimachinery/pkg/util/json"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	podregistry "k8s.io/kubernetes/pkg/registry/core/pod"
)

// stored has the objects of a case as the API server would hold them.
type stored struct {
	Nodes   []*v1.Node       `json:"nodes"`
	Pods    []*v1.Pod        `json:"pods"`
	Objects []runtime.Object `json:"objects"`
	Pod     *v1.Pod          `json:"pod"`
}

// decode reads an object and fills in the defaults, as for a request that writes it.
func decode[T any, P interface {
	*T
	runtime.Object
}](text []byte) (P, error) {
	object := P(new(T))
	if err := kjson.Unmarshal(text, object); err != nil {
		return nil, err
	}
	legacyscheme.Scheme.Default(object)
	return object, nil
}

// readBack gives an object as it is read after it was written: without its empty lists, and with
// the defaults once more.
func readBack[T any, P interface {
	*T
	runtime.Object
}](text []byte) (P, error) {
	object, err := decode[T, P](text)
	if err != nil {
		return nil, err
	}
	if text, err = json.Marshal(object); err != nil {
		return nil, err
	}
	return decode[T, P](text)
}

func decodeAll[T any, P interface {
	*T
	runtime.Object
}](texts [][]byte) ([]P, error) {
	objects := make([]P, 0, len(texts))
	for index, text := range texts {
		object, err := readBack[T, P](text)
		if err != nil {
			return nil, fmt.Errorf("%T %d: %w", object, index, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// admit lets a new pod in as the API server does, without the admission plugins: decoding,
// defaults, the strategy of pods, validation. The pod comes back as it would be stored; or the
// mistakes for which it is refused.
func admit(ctx context.Context, text []byte) (*v1.Pod, []refusal, error) {
	pod, err := decode[v1.Pod](text)
	if err != nil {
		return nil, []refusal{{Message: err.Error()}}, nil
	}
	named("Pod", &pod.ObjectMeta)
	var inside api.Pod
	if err := legacyscheme.Scheme.Convert(pod, &inside, nil); err != nil {
		return nil, []refusal{{Message: err.Error()}}, nil
	}
	uid := inside.UID
	rest.FillObjectMetaSystemFields(&inside)
	if uid != "" {
		// The answer must not change from run to run.
		inside.UID = uid
	}
	ctx = genericapirequest.WithNamespace(ctx, inside.Namespace)
	ctx = warning.WithWarningRecorder(ctx, silent{})
	if err := rest.BeforeCreate(podregistry.Strategy, ctx, &inside); err != nil {
		refusals, err := causes(err)
		return nil, refusals, err
	}
	var held v1.Pod
	if err := legacyscheme.Scheme.Convert(&inside, &held, nil); err != nil {
		return nil, nil, err
	}
	// A quantity as a user writes it may have a form that the plugins change in place when they add
	// to it. A scheduler never sees it: it reads what was written in the shortest form.
	if text, err = json.Marshal(&held); err != nil {
		return nil, nil, err
	}
	pod, err = decode[v1.Pod](text)
	return pod, nil, err
}

// causes takes the answer to a refused request apart.
func causes(err error) ([]refusal, error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil, err
	}
	var refusals []refusal
	for _, cause := range status.Status().Details.Causes {
		refusals = append(refusals, refusal{Field: cause.Field, Message: cause.Message})
	}
	if len(refusals) == 0 {
		return nil, err
	}
	return refusals, nil
}

// named fills in what every object in a cluster has, where a case leaves it out.
func named(kind string, meta *metav1.ObjectMeta) {
	if meta.Namespace == "" {
		meta.Namespace = metav1.NamespaceDefault
	}
	if meta.UID == "" {
		meta.UID = uidOf(kind, meta.Namespace, meta.Name)
	}
}

// uidOf is the UID of an object for which a case gives none. gpu-batch takes these words for a UID,
// too, also where other objects refer to this one without a UID.
func uidOf(kind, namespace, name string) types.UID {
	return types.UID(kind + "/" + namespace + "/" + name)
}

// silent takes the warnings that come with an answer.
type silent struct{}

func (silent) AddWarning(string, string) {}
