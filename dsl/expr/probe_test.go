package expr
import ("testing";"errors";"github.com/handwerk-dev/handwerk/dsl";"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured";"time";"runtime")
func TestProbe(t *testing.T){
 var m0,m1,m2,m3 runtime.MemStats
 runtime.ReadMemStats(&m0)
 s:=time.Now(); c,err:=New(); if err!=nil{t.Fatal(err)}; t.Log("new",time.Since(s)); runtime.GC(); runtime.ReadMemStats(&m1); t.Log(m1.HeapAlloc-m0.HeapAlloc)
 s=time.Now(); New(); t.Log("new2",time.Since(s))
 r:=&dsl.Request{Object:&unstructured.Unstructured{Object:map[string]any{"spec":map[string]any{"replicas":int64(3),"f":2.5,"n":nil,"l":[]any{"a"},"q":"100Mi"}}},Cause:dsl.Create}
 for _,x:=range []string{"self.spec.replicas > 0","self.spec.f > 2","self.spec.n == null","self.spec.replicas","slef.spec","self.spec.","self.spec.x","self.spec.replicas > 0.5","'a' in self.spec.l","old == null","old.spec.x == 1","self.?spec.?y.orValue(1) == 1","quantity(self.spec.q).isGreaterThan(quantity('1Mi'))","cause == 'create'","1","cause","size(diff)==0","[1,2,3].all(x, [1,2,3].all(y,[1,2,3].all(old, old>0)))","params.x == 1","self.spec == {","has(self.spec.z)","self.spec.replicas == 3 &&\n  slef > 1 || foo()","",  "self.metadata.name.matches('(')","1 == 'a'", "timestamp('x') > timestamp('y')","@", "cause > 1", "self.spec.all(k, true) == 'a'", "[1,2].map(x, x*2)", "'a'.foo()", "diff.exists(d, d.path == 'spec.x')", "type(self)","dyn(self.spec)", "duration('5m')"}{
  p,err:=c.Compile(x); if err!=nil { if e,ok:=errors.AsType[*Error](err);ok{t.Logf("%q\n%s",x,e.Render())}else{t.Log(x,err)}; continue}
  ok,err:=p.Holds(r,nil); t.Log(x,"=>",ok,err,p.uses)
 }
 runtime.GC(); runtime.ReadMemStats(&m2)
 var ps []*Program
 s=time.Now()
 for range 100 { p,_:=c.Compile("self.spec.replicas > 0 && has(self.spec.z)"); ps=append(ps,p)}
 t.Log("100 compile",time.Since(s)); runtime.GC(); runtime.ReadMemStats(&m3); t.Log("per program",(int64(m3.HeapAlloc)-int64(m2.HeapAlloc))/100); runtime.KeepAlive(ps)
 list:=make([]any,2000); for i:=range list{list[i]=int64(i)}
 r.Object.Object["l"]=list
 p,_:=c.Compile("self.l.all(x, self.l.all(y, x+y>=0))"); s=time.Now(); _,err=p.Holds(r,nil); t.Log(err,time.Since(s))
 p=ps[0]; s=time.Now(); for range 10000 { p.Holds(r,nil)}; t.Log("eval",time.Since(s)/10000)
}
