select sum(lo_extendedprice * lo_discount)
from lineorder
where lo_orderdate between 19930101 and 19931231
  and lo_discount between 1 and 3
  and lo_quantity < 25;
