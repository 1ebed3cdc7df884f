-- As printed in the specification. Its filter factor, (1/364)*(3/11)*0.1, counts half of the ten quantities selected here.
select sum(lo_extendedprice*lo_discount) as revenue
from lineorder, date
where lo_orderdate = d_datekey
  and d_weeknuminyear = 6
  and d_year = 1994
  and lo_discount between 5 and 7
  and lo_quantity between 26 and 35;
