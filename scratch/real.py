"""real.py OUT eps rows seeds [method] : per-column W1/std, decoded, pooled medians by table"""
import sys, json, time, warnings, logging
warnings.simplefilter("ignore"); logging.disable(logging.CRITICAL)
import numpy as np, pandas as pd, hashlib
from pathlib import Path
from sdv_privpgd import fit_table, Numerical, Categorical
D=Path("/work/shared/data")
T=["adult","california_housing","bank_marketing_full","diabetes_130us","diamonds","nist_national2018","nyc_flights13","acs_workers_us_2018","acs_income_ne_2018"]
def described(real, bounds, whole):
    from pandas.api.types import is_bool_dtype, is_numeric_dtype
    d={}
    for name,c in real.items():
        if is_bool_dtype(c): continue
        if is_numeric_dtype(c) and (name in bounds or c.nunique()>60):
            lo,hi=bounds.get(name,(c.min(),c.max()))
            v=c.dropna()
            kw={}
            if whole and (v==v.round()).all(): kw=dict(decimal_places=0); lo,hi=int(np.floor(lo)),int(np.ceil(hi))
            d[name]=Numerical(lo,hi,**kw)
    return d
def w1(a,b):
    q=(np.arange(2000)+.5)/2000
    return np.abs(np.quantile(a,q)-np.quantile(b,q)).mean()
def main(eps,rows,seeds,method,tables=T,whole=True,extra=0):
    out=[]
    for t in tables:
        real=pd.read_parquet(D/f"{t}.parquet")
        bounds=json.loads((D/f"{t}.json").read_text())["public_bounds"]
        real=real.sample(min(rows,len(real)),random_state=5)
        d=described(real,bounds,whole)
        df=real[list(d)].astype(float)
        rng=np.random.default_rng(3)
        for i in range(extra):  # categories beside
            df[f"zz{i}"]=rng.choice(list("abcd"),len(df)); d[f"zz{i}"]=Categorical(list("abcd"))
        kw={"ind":dict(strategy="independent",engine="pgm"),"gum":dict(strategy="all_pairs",engine="gum")}[method]
        for s in range(seeds):
            f=fit_table(df,d,epsilon=eps,**kw); S=f.sample(len(df))
            for c in d:
                if c.startswith("zz"): continue
                a,b=df[c].dropna().to_numpy(float),S[c].dropna().to_numpy(float)
                if not len(a) or not len(b): continue
                ks=np.union1d(a,b); k=np.abs(np.searchsorted(np.sort(a),ks,"right")/len(a)-np.searchsorted(np.sort(b),ks,"right")/len(b)).max()
                out.append(dict(table=t,col=c,seed=s,W=w1(a,b)/max(a.std(),1e-9),KS=k,mean=abs(a.mean()-b.mean())/max(a.std(),1e-9),
                    width=d[c]["range_max"]-d[c]["range_min"], places=d[c].get("decimal_places")))
    return pd.DataFrame(out)
if __name__=="__main__":
    o,eps,rows,seeds=sys.argv[1],float(sys.argv[2]),int(sys.argv[3]),int(sys.argv[4]); method=sys.argv[5] if len(sys.argv)>5 else "ind"
    t=time.time(); f=main(eps,rows,seeds,method); f.to_parquet(o)
    m=f.groupby(["table","col"])[["W","KS","mean"]].median().groupby("table").mean()
    print(o,eps,rows,"time",round(time.time()-t)); print(m.round(4).to_string()); print("ALL",m.mean().round(4).to_dict())
    f["narrow"]=(f.width<513)&(f.places==0)
    print(f.groupby("narrow")[["W","KS","mean"]].mean().round(4).to_string(), f.groupby("narrow").col.nunique().to_dict())
