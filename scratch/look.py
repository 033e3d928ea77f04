import sys; sys.path.insert(0,"/tmp/w/a13scratch")
from m import *
import sdv_privpgd.discovery.plan as plan
name=sys.argv[1]; v=V[name]
import sdv_privpgd.discovery.transcript as tr
old=tr.Asker.measure
def measure(self, queries, mu, *, what, **k):
    a=old(self,queries,mu,what=what,**k); print(what,len(queries),float(mu),a[0].stddev,[len(x.answer) for x in a]); return a
tr.Asker.measure=measure
df=table(v,np.random.default_rng(0))
f=fit_table(df,declared(v,df),epsilon=1.0,strategy="independent",engine="pgm")
for c in f.ledger.charges: print(c.what, c.stddev, float(c.mu_squared), c.count if hasattr(c,"count") else "")
col=f.fitted.schema.columns[0]
m=col.merging; import numpy as np
codes=np.array(m.codes) if m else None
starts=col.cells.starts if hasattr(col.cells,"starts") else col.cells.edges[:-1]
fr=np.array(m.frequencies) if m else None
for c in range(len(m) if m else 0):
    w=np.flatnonzero(codes==c); print(c, starts[w[0]], starts[w[-1]], len(w), round(fr[w].sum(),1), np.round(fr[w][:8],2))
for me in f.fitted.release.measurements: print(me.query.describe(), me.stddev, me.answer[:40])
