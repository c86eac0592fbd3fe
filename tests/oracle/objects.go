package main

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
)

// decodeObjects reads objects that say their kinds, and gives them as they are read after they were
// written.
func decodeObjects(texts []json.RawMessage) ([]runtime.Object, error) {
	objects := make([]runtime.Object, 0, len(texts))
	for index, text := range texts {
		object, err := decodeObject(text)
		if err == nil {
			text, err = json.Marshal(object)
		}
		if err == nil {
			object, err = decodeObject(text)
		}
		if err != nil {
			return nil, fmt.Errorf("objects[%d]: %w", index, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// decodeObject reads an object of any kind and fills in the defaults, and what every object of its
// kind has in a cluster: a namespace, and the UID by which volumes name their claims.
func decodeObject(text []byte) (runtime.Object, error) {
	object, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	if err != nil {
		return nil, err
	}
	legacyscheme.Scheme.Default(object)
	switch object := object.(type) {
	case *v1.PersistentVolumeClaim:
		named("PersistentVolumeClaim", &object.ObjectMeta)
		for index := range object.OwnerReferences {
			owner := &object.OwnerReferences[index]
			if owner.UID == "" {
				owner.UID = uidOf(owner.Kind, object.Namespace, owner.Name)
			}
		}
	case *storagev1.CSIStorageCapacity:
		named("CSIStorageCapacity", &object.ObjectMeta)
	}
	return object, nil
}

// exchanged has the stores of the kinds of which a cluster gets other objects with every case.
// Whatever plugins know of these kinds they read in the stores when they are asked.
type exchanged struct {
	namespaces, claims, volumes, classes, csiNodes, drivers, capacities cache.Store
	replicaSets, statefulSets, replicationControllers, attachments      cache.Store
}

func exchangedOf(factory informers.SharedInformerFactory) *exchanged {
	core, storage, apps := factory.Core().V1(), factory.Storage().V1(), factory.Apps().V1()
	return &exchanged{
		namespaces: core.Namespaces().Informer().GetStore(),
		claims:     core.PersistentVolumeClaims().Informer().GetStore(),
		volumes:    core.PersistentVolumes().Informer().GetStore(),
		classes:    storage.StorageClasses().Informer().GetStore(),
		csiNodes:   storage.CSINodes().Informer().GetStore(),
		drivers:    storage.CSIDrivers().Informer().GetStore(),
		capacities: storage.CSIStorageCapacities().Informer().GetStore(),

		attachments:            storage.VolumeAttachments().Informer().GetStore(),
		replicaSets:            apps.ReplicaSets().Informer().GetStore(),
		statefulSets:           apps.StatefulSets().Informer().GetStore(),
		replicationControllers: core.ReplicationControllers().Informer().GetStore(),
	}
}

// of gives the store for an object; nil: objects of its kind are not exchanged.
func (e *exchanged) of(object runtime.Object) cache.Store {
	switch object.(type) {
	case *v1.Namespace:
		return e.namespaces
	case *v1.PersistentVolumeClaim:
		return e.claims
	case *v1.PersistentVolume:
		return e.volumes
	case *storagev1.StorageClass:
		return e.classes
	case *storagev1.CSINode:
		return e.csiNodes
	case *storagev1.CSIDriver:
		return e.drivers
	case *storagev1.CSIStorageCapacity:
		return e.capacities
	case *storagev1.VolumeAttachment:
		return e.attachments
	case *appsv1.ReplicaSet:
		return e.replicaSets
	case *appsv1.StatefulSet:
		return e.statefulSets
	case *v1.ReplicationController:
		return e.replicationControllers
	}
	return nil
}

// replace exchanges all objects. It says false, and does nothing, if there is one of another kind.
func (e *exchanged) replace(objects []runtime.Object) (bool, error) {
	lists := map[cache.Store][]any{
		e.namespaces: nil, e.claims: nil, e.volumes: nil, e.classes: nil,
		e.csiNodes: nil, e.drivers: nil, e.capacities: nil,
		e.replicaSets: nil, e.statefulSets: nil, e.replicationControllers: nil, e.attachments: nil,
	}
	for _, object := range objects {
		store := e.of(object)
		if store == nil {
			return false, nil
		}
		lists[store] = append(lists[store], object)
	}
	for store, list := range lists {
		if len(list) == 0 && len(store.ListKeys()) == 0 {
			continue
		}
		if err := store.Replace(list, ""); err != nil {
			return false, err
		}
	}
	return true, nil
}
