package decide_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"testing"

	"sluice.dev/sluice/controlplane/internal/decide"
	"sluice.dev/sluice/controlplane/internal/model"
)

// as returns an action as one of the types of actions; nil if it is of another type.
func as[A decide.Action](a decide.Action) A {
	found, _ := a.(A)
	return found
}

// modifies applies a Modify action to an object. It returns false if the action is of another type, or changed nothing.
func modifies(a decide.Action, object model.Object) bool {
	m := as[*decide.Modify](a)
	return m != nil && m.Change(object)
}

// jobOf returns the job that an action assigns; nil: none.
func jobOf(a decide.Action) *model.Job {
	if given := as[*decide.GiveJob](a); given != nil {
		return given.Job
	}
	return nil
}

// droppedBy returns the job that an action deletes; nil: none.
func droppedBy(a decide.Action) *model.Job {
	if dropped := as[*decide.DropJob](a); dropped != nil {
		return dropped.Job
	}
	return nil
}

// recordingStore is a store that records which change was requested.
type recordingStore struct {
	calls  []string
	object model.Object
	err    error
}

func (r *recordingStore) called(what string) error {
	r.calls = append(r.calls, what)
	return r.err
}

func (r *recordingStore) OwnSeen(_ context.Context, seen *model.Volume, _ []*model.RadosClients,
	change func(*model.Volume) (model.Ownership, error),
) (*model.Volume, error) {
	next, err := change(seen)
	return &model.Volume{Status: model.VolumeStatus{Ownership: next}}, errors.Join(err, r.called("OwnSeen"))
}

func (r *recordingStore) Modify(_ context.Context, kind model.Kind, name string, change func(model.Object) (bool, error)) (model.Object, error) {
	_, err := change(r.object)
	return r.object, errors.Join(err, r.called("Modify "+string(kind)+" "+name))
}

func (r *recordingStore) AddPorts(_ context.Context, target string, _ []model.TargetPort) (*model.Target, error) {
	return &model.Target{}, r.called("AddPorts " + target)
}

func (r *recordingStore) PutJob(_ context.Context, job model.Job) (*model.Job, error) {
	return &job, r.called("PutJob " + job.ID)
}

func (r *recordingStore) DeleteJob(_ context.Context, job *model.Job) error {
	return r.called("DeleteJob " + job.ID)
}

func (r *recordingStore) Remove(_ context.Context, object model.Object) error {
	return r.called("Remove " + object.Metadata().Name)
}

func (r *recordingStore) ForgetGateway(context.Context, uint32) error {
	return r.called("ForgetGateway")
}

func (r *recordingStore) EvictSession(context.Context, *model.Session) error {
	return r.called("EvictSession")
}

func (r *recordingStore) FenceRadosClients(_ context.Context, seen *model.RadosClients, _ []string) (*model.RadosClients, error) {
	return seen, r.called("FenceRadosClients")
}

func (r *recordingStore) DropRadosClients(context.Context, *model.RadosClients) error {
	return r.called("DropRadosClients")
}

// actions has an action of each type, and the single change of the store that it makes.
func actions(volume *model.Volume) map[string]decide.Action {
	of := decide.Subject{Kind: model.KindVolume, Name: "v", UID: "u", Object: volume}
	job, record := &model.Job{ID: "u.create"}, &model.RadosClients{PoolUID: "p"}
	assign := func(ownership model.Ownership) (model.Ownership, error) { return ownership.Assign(ref(1)) }
	return map[string]decide.Action{
		"OwnSeen":            &decide.ChangeOwner{Subject: of, From: volume.Status.Ownership, Change: assign},
		"Modify Volume v":    &decide.Modify{Subject: of, Change: func(model.Object) bool { return true }},
		"AddPorts v":         &decide.AddPorts{Subject: of, Ports: []model.TargetPort{{Gateway: 1}}},
		"PutJob u.create":    &decide.GiveJob{Subject: of, Job: job},
		"DeleteJob u.create": &decide.DropJob{Subject: of, Job: job},
		"Remove v":           &decide.Remove{Subject: of},
		"ForgetGateway":      &decide.ForgetGateway{Subject: of, Number: 1},
		"EvictSession":       &decide.Evict{Subject: of, Session: &model.Session{}},
		"FenceRadosClients":  &decide.FenceClients{Subject: of, Record: record},
		"DropRadosClients":   &decide.DropClients{Subject: of, Record: record},
	}
}

func unowned() *model.Volume {
	return &model.Volume{Meta: model.Meta{Name: "v", UID: "u"},
		Status: model.VolumeStatus{Ownership: model.Ownership{State: model.Unowned}}}
}

func TestEachActionMakesItsOneChangeOfTheStore(t *testing.T) {
	for call, a := range actions(unowned()) {
		kept := &recordingStore{object: unowned()}
		stored, err := decide.Execute(t.Context(), kept, a)
		if err != nil || !stored.Changed || len(kept.calls) != 1 || kept.calls[0] != call {
			t.Errorf("%T made the changes %q, not %q: %+v, %v", a, kept.calls, call, stored, err)
		}
	}
}

func TestAnActionThatIsNotStoredIsAnError(t *testing.T) {
	failed := errors.New("the store is gone")
	for _, a := range actions(unowned()) {
		if _, err := decide.Execute(t.Context(), &recordingStore{object: unowned(), err: failed}, a); !errors.Is(err, failed) {
			t.Errorf("%T: %v", a, err)
		}
	}
}

func TestAnEvictionOfASessionThatHasEndedChangesNothing(t *testing.T) {
	kept := &recordingStore{err: model.Precondition("name", "it is over")}
	if stored, err := decide.Execute(t.Context(), kept, actions(unowned())["EvictSession"]); err != nil || stored.Changed {
		t.Errorf("%+v, %v", stored, err)
	}
}

func TestAnActionForAnObjectThatWasCreatedAgainIsStale(t *testing.T) {
	other := unowned()
	other.Meta.UID = "another"
	all := actions(unowned())
	if _, err := decide.Execute(t.Context(), &recordingStore{object: other}, all["Modify Volume v"]); !errors.Is(err, decide.ErrStale) {
		t.Errorf("Modify: %v", err)
	}
	if _, err := as[*decide.ChangeOwner](all["OwnSeen"]).Owning(other); !errors.Is(err, decide.ErrStale) {
		t.Errorf("ChangeOwner: %v", err)
	}
}

// Every type with a method execute is an action, and execute.go contains all of these methods.
func TestNoActionIsLeftOutOfTheseTests(t *testing.T) {
	tried := map[string]bool{}
	for _, a := range actions(unowned()) {
		tried[reflect.TypeOf(a).Elem().Name()] = true
	}
	file, err := parser.ParseFile(token.NewFileSet(), "execute.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, declared := range file.Decls {
		f, ok := declared.(*ast.FuncDecl)
		if !ok || f.Recv == nil || f.Name.Name != "execute" {
			continue
		}
		found++
		if name := f.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name; !tried[name] {
			t.Errorf("%s is an action, and no test executes it", name)
		}
	}
	if found != len(tried) {
		t.Errorf("%d types execute, and %d are tried", found, len(tried))
	}
}
