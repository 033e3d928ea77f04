"""usage: m.py [method] [fits] [variants...]"""
import sys, time, warnings
import numpy as np, pandas as pd
warnings.simplefilter("ignore")
from sdv_privpgd import Datetime, PrivPGDSynthesizer, fit_table, Numerical, Categorical
import logging; logging.disable(logging.CRITICAL)

def cluster(n=2500, share=.1, low=40, high=100, flow=200, fhigh=260, rng=None, kind="unif"):
    far = rng.random(n) < share
    near = rng.normal((low+high)/2,(high-low)/6,n).clip(low,high) if kind=="norm" else rng.uniform(low,high,n)
    return np.where(far, rng.uniform(flow,fhigh,n), near), far

def others(n, far, k, rng):
    out = {}
    for i in range(k):
        if i % 2 == 0:
            out[f"c{i}"] = np.where(rng.random(n) < .7, np.where(far, "x", "y"), rng.choice(list("xyz"), n))
        else:
            out[f"c{i}"] = rng.choice(list("abcd"), n)
    return out

V = {}
def variant(name, n, share, rng_, places, cols, cut, **k):
    V[name] = dict(n=n, share=share, range=rng_, places=places, cols=cols, cut=cut, k=k)
variant("trial", 2500, .1, (40,260), 0, 3, 150)
variant("trial_np", 2500, .1, (40,260), None, 3, 150)
variant("trial_1d", 2500, .1, (40,260), 1, 3, 150)
variant("share5", 2500, .05, (40,260), 0, 3, 150)
variant("share20", 2500, .2, (40,260), 0, 3, 150)
variant("narrow", 2500, .1, (40,260), 0, 3, 150, flow=235, fhigh=245)
variant("n1000", 1000, .1, (40,260), 0, 3, 150)
variant("n10000", 10000, .02, (40,260), 0, 3, 150)
variant("n50000", 50000, .02, (40,260), 0, 10, 150)
variant("cols10", 2500, .1, (40,260), 0, 10, 150)
variant("wide", 2500, .1, (0,10000), 0, 3, 150)
variant("wide_np", 2500, .1, (0,10000), None, 3, 150)
variant("wide10", 5000, .1, (0,10000), 0, 10, 150)
variant("money", 2500, .1, (0,10_000_000), 2, 3, None)
variant("money_big", 20000, .1, (0,10_000_000), 2, 6, None)
variant("uniform", 2500, 0, (40,260), 0, 3, None, low=40, high=260)
variant("bell", 2500, 0, (0,400), 0, 3, None, low=100, high=160, kind="norm")
variant("bell_share", 2500, .1, (0,400), 0, 3, 230, low=100, high=160, kind="norm", flow=300, fhigh=340)

variant("offset", 2500, .1, (1000,1500), 0, 3, 1200, low=1020, high=1100, flow=1380, fhigh=1480)
variant("wide4", 2500, .04, (0,10000), 0, 3, 150)
variant("wide_in", 2500, .1, (0,10000), 0, 3, 1500, low=1050, high=1200, flow=1750, fhigh=1900)
variant("wide_hi", 2500, .1, (0,10000), 0, 3, 6000, low=50, high=1200, flow=7750, fhigh=7900)
variant("dates", 2500, .1, (12053,20088), "D", 3, 15000, low=12400, high=13500, flow=18300, fhigh=18900)
variant("dates_n", 2500, .1, (19700,20088), "D", 3, 19900, low=19710, high=19800, flow=19980, fhigh=20050)
variant("low_cl", 2500, .1, (0,500), 0, 3, None, low=400, high=460, flow=20, fhigh=80)
variant("two", 2500, .1, (-100,300), 0, 3, 150, low=-20, high=40, flow=200, fhigh=260)
variant("empty", 2500, 0, (0,500), 0, 3, None, low=0, high=20)
variant("empty2", 2500, 0, (0,100000), 0, 3, None, low=0, high=20)
variant("expo", 2500, 0, (0,365), 0, 3, None, kind="expo", low=0, high=30)

def table(v, rng):
    n = v["n"]
    if v["cut"] is None and "low" not in v["k"]:
        x = np.exp(rng.normal(8, 1.2, n)); far = x > 10000
    else:
        x, far = cluster(n, v["share"], rng=rng, **v["k"])
    if v["k"].get("kind") == "expo": x = rng.exponential(9, n)
    x = x.clip(*v["range"])
    if v["places"] == "D": x = np.floor(x); return pd.DataFrame({"x": pd.to_datetime(x.astype("int64"), unit="D"), **others(n, far, v["cols"]-1, rng)})
    if v["places"] is not None: x = x.round(v["places"])
    return pd.DataFrame({"x": x, **others(n, far, v["cols"]-1, rng)})

def declared(v, df):
    num = dict(decimal_places=v["places"]) if v["places"] != "D" and v["places"] is not None else {}
    d = {"x": Numerical(*v["range"], **num)} if v["places"] != "D" else {"x": Datetime(*(str(np.datetime64(e, "D")) for e in v["range"]), datetime_format="%Y-%m-%d")}
    for c in df.columns[1:]:
        d[c] = Categorical(list("xyz") if int(c[1:])%2==0 else list("abcd"))
    return d

def w1(a, b):
    q = (np.arange(2000)+.5)/2000
    return np.abs(np.quantile(a,q)-np.quantile(b,q)).mean()

def run(name, fits, method, eps=1.0, discovery=None):
    v = V[name]; rows = []
    for i in range(fits):
        rng = np.random.default_rng(1000+i)
        df = table(v, rng)
        kw = {"ind": dict(strategy="independent", engine="pgm"), "pgm": dict(strategy="all_pairs", engine="pgm"), "gum": dict(strategy="all_pairs", engine="gum"), "full": {}}[method]
        t = time.time()
        fitted = fit_table(df, declared(v, df), epsilon=eps, **kw)
        s = fitted.sample(len(df))["x"]; x = df["x"]
        if v["places"] == "D": s, x = ((pd.to_datetime(e)-pd.Timestamp(0)).dt.total_seconds()/86400 for e in (s, x))
        s, x = s.to_numpy(float), x.to_numpy(float)
        r = {"t": time.time()-t, "w/range": w1(s,x)/(v["range"][1]-v["range"][0]), "w/std": w1(s,x)/x.std(),
             "mean_err/std": abs(s.mean()-x.mean())/x.std(), "std_ratio": s.std()/x.std()}
        ks = np.union1d(s,x); r["ks"]=np.abs(np.searchsorted(np.sort(s),ks,"right")/len(s)-np.searchsorted(np.sort(x),ks,"right")/len(x)).max()
        if v["cut"] is not None:
            fl, fh = v["k"].get("flow",200), v["k"].get("fhigh",260)
            m=(fh-fl)*.1
            r["far"] = ((s>=fl-m)&(s<=fh+m)).mean(); r["true"] = (x>v["cut"]).mean()
            hi = v["k"].get("high",100)
            r["gap"] = ((s>hi+.1*(fl-hi))&(s<fl-m)).mean()
            r["bad"] = float(abs(r["far"]-r["true"]) > .4*r["true"])
        rows.append(r)
    f = pd.DataFrame(rows)
    med = f.median()
    out = f"{name:>11} {method} eps={eps:g} W/std {med['w/std']:.3f} (mean {f['w/std'].mean():.3f}) W/range {med['w/range']:.2g} KS {med['ks']:.3f} mean_err {med['mean_err/std']:.3f} std {med['std_ratio']:.2f} t {med['t']:.2f}"
    if "far" in f: out += f"  far {med['far']:.3f} of {med['true']:.3f} gap {med['gap']:.3f} bad {f['bad'].mean():.2f}"
    print(out, flush=True)
    return f
if __name__ == "__main__":
    method, fits = sys.argv[1], int(sys.argv[2])
    eps = 1.0
    names = sys.argv[3:] or list(V)
    if names and names[0].startswith("eps="): eps=float(names[0][4:]); names=names[1:] or list(V)
    for n in names: run(n, fits, method, eps)
