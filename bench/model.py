#!/usr/bin/env python3
"""The 13 queries of the Star Schema Benchmark on a GPU, after Yuan, Lee and Zhang (VLDB 2013): ways of transfer, the invisible
join, and a model of their cost.

    bench/model.py BUILD_DIR           (make bench-model)

Environment variables choose what to do. Their defaults:

    PARTS="transfer invisible split sorted model"
    SCALE=1                of the Star Schema Benchmark
    COMPRESSION=none       of its database; "" is what SET compression says
    RUNS=5                 runs of a query, after one that reads the files
    THREADS=               of the host; by default all processors
    GPU_MEMORY=            budget on the GPU, as --gpu-memory takes it
    CSV=                   a file for all figures
    OUT=BUILD_DIR/bench/model             transfer.svg, invisible.svg, model.svg

transfer: ms of each query without a column in the GPU's cache, by SET transfer; with zerocopy the columns are in pinned memory
before, as they are in the paper. Last, with all columns on the GPU.
invisible: SET invisible_join = on and off, columns on the GPU and not.
split: what of a query's time, columns not on the GPU, is whose: compilation, columns on their way, the build sides, the probes of
its joins, filters and aggregates, and the rest. (The paper's Figure 5.)
sorted: the fact table sorted by a foreign key and stored as ratio, beside the table in the order of its load: bytes of the
columns that the flight of queries reads, ms with columns on the GPU and not. (The paper's Table 4.)
model: what a query should take,

    resident    start + sections * section + chunks * bind + sum over its sections of (staged + on demand) / memory
                                                                     + probes * probe + grouped rows * group
    cold        start + sections * section + max(transferred / link + chunks * chunk + in place * place, chunks * bind + the sum)

staged, on demand and transferred are the bytes that EXPLAIN (ANALYZE, PROGRAM) plans and counts, chunks the columns of the tablets that it
reads: the host has something to do for each. in place are the bytes of columns that stayed on the host, because their pages are pinned, which
are read there. The first join is probed by the rows that
the filters and the ranges of the build sides' keys leave, which a query of its own counts, each other join by the rows that the
joins before it leave. memory and link are measured by build/transfer_bench, start, section, bind, chunk, place, probe and group by six
queries that are none of the 13. Nothing is fitted to the queries that are predicted. After it what the model says of other
machines: a link or a memory of twice the rate.
"""

import os
import re
import subprocess
import sys

import plot
from measure import (ROOT, Analysis, CsvFile, Failed, OtherLoad, Session, Table, environment, make_database, measure, measure_cold, median,
                     rows_of, same)
from ranks import QUERIES, statement_of

TRANSFERS = ["stream", "sync", "pageable", "zerocopy"]
PIECE = 4 << 20
FACT = "lineorder"
SORTED = {"q1": "lo_orderdate", "q2": "lo_partkey", "q3": "lo_custkey", "q4": "lo_custkey"}  # by flight


def count_of_probed(sql):
    """A query that counts the rows of the fact table that a star join probes: those that its own conditions and, of each build
    side that is filtered, the least and the greatest key leave."""
    where = re.search(r" where (.*?)(?: group by | order by |$)", sql, re.I).group(1)
    where = re.sub(r"between (\S+) and (\S+)", r"between \1 AND \2", where)
    conditions = where.split(" and ")
    by_table = {}
    for condition in conditions:
        prefixes = frozenset(re.findall(r"\b([a-z]+)_[a-z]", re.sub(r"'[^']*'", "", condition)))
        by_table.setdefault(prefixes, []).append(condition)
    tables = {name[0]: name for name in ("customer", "date", "part", "supplier")}
    bounds = by_table.get(frozenset(["lo"]), [])
    for prefixes, joins in by_table.items():
        (other,) = prefixes - {"lo"} or {None}
        filters = by_table.get(frozenset([other]))
        if "lo" not in prefixes or other is None or filters is None:
            continue
        key, foreign = sorted(re.split(r" *= *", joins[0]), key=lambda name: name.startswith("lo_"))
        ends = [f"(SELECT {end}({key}) FROM {tables[other]} WHERE {' AND '.join(filters)})" for end in ("min", "max")]
        bounds.append(f"{foreign} BETWEEN {ends[0]} AND {ends[1]}")
    return f"SELECT count(*) FROM {FACT}" + (" WHERE " + " AND ".join(bounds) if bounds else "")


class Machine:
    """What the model knows of the machine: milliseconds, and bytes per millisecond."""

    def __init__(self, memory, link, start=0.0, section=0.0, bind=0.0, chunk=0.0, place=0.0, probe=0.0, group=0.0):
        self.memory, self.link, self.start, self.section, self.bind = memory, link, start, section, bind
        self.chunk, self.place = chunk, place
        self.probe, self.group = probe, group

    def kernels(self, sections):
        return sum(self.kernel(section) for section in sections if section.on_gpu)

    def kernel(self, section):
        probes = sum([section.probed, *section.joined][:len(section.joined)])
        grouped = section.joined[-1] if section.joined else 0  # (sections that build join tables have no joins here)
        return ((section.staged + section.on_demand) / self.memory + probes * self.probe + grouped * self.group)

    def resident(self, sections):
        return self.start + self.section * (len(sections) - 1) + self.bound(sections) + self.kernels(sections)

    def bound(self, sections):
        return sum(s.chunks for s in sections) * self.bind

    def cold(self, sections):
        link = sum(s.transferred / self.link + s.chunks * self.chunk + s.in_place * self.place for s in sections)
        return self.start + self.section * (len(sections) - 1) + max(link, self.bound(sections) + self.kernels(sections))

    def with_rates(self, memory, link):
        return Machine(self.memory * memory, self.link * link, self.start, self.section, self.bind, self.chunk,
                       self.place / link, self.probe / memory, self.group / memory)


class Model:
    def __init__(self, build):
        self.build = build
        self.scale = environment("SCALE", "1")
        self.runs = int(environment("RUNS", "5"))
        self.threads = environment("THREADS", str(os.cpu_count()))
        memory = environment("GPU_MEMORY", "")
        self.gpu_options = ["--gpu-memory", memory] if memory else []
        self.out = environment("OUT", os.path.join(build, "bench", "model"))
        os.makedirs(self.out, exist_ok=True)
        self.csv = CsvFile(environment("CSV", ""), ["part", "query", "way", "ms", "kernel_ms", "predicted_ms", "bytes"])
        os.environ.setdefault("COMPRESSION", "none")
        prepared = subprocess.run(["bench/queries.sh", "ssb", "prepare", build, self.scale], check=True, stdout=subprocess.PIPE,
                                  text=True)
        self.session = Session(build, prepared.stdout.strip(), "gpu", self.threads, 600, self.gpu_options)
        self.statements = {query: statement_of(query) for query in QUERIES}

    def record(self, **values):
        self.csv.row(**values)

    def resident(self, sql):
        return measure(self.session, sql, self.runs)

    def cold(self, sql):
        return measure_cold(self.session, sql, self.runs)

    def table(self, title, part, ways):
        """`ways`: {name: (statements that set it, how to measure)}. Prints, records and plots them, and checks the rows."""
        table = Table(f"{title}, SSB scale {self.scale}, ms", ("query", -5), *((name, 9) for name in ways))
        times = {query: {} for query in QUERIES}
        rows = {}
        for name, (settings, how) in ways.items():
            for setting in settings:
                self.session.run(setting)
            for query, sql in self.statements.items():
                answer, times[query][name], kernel_ms = how(sql)
                if not same(rows.setdefault(query, answer), answer):
                    raise Failed(f"{query}: other rows with {' '.join(settings)}")
                self.record(part=part, query=query, way=name, ms=times[query][name], kernel_ms=kernel_ms)
        for query in QUERIES:
            table.row(query, *times[query].values())
        table.row("sum", *(sum(times[query][name] for query in QUERIES) for name in ways))
        plot.bars(os.path.join(self.out, part + ".svg"), f"{title}, ms", times)

    def transfer(self):
        ways = {t: ([f"SET transfer = {t}"], self.resident if t == "zerocopy" else self.cold) for t in TRANSFERS}
        ways["resident"] = (["SET transfer = stream"], self.resident)
        self.table("Ways of transfer", "transfer", ways)

    def invisible(self):
        ways = {}
        for place, how in (("resident", self.resident), ("cold", self.cold)):
            for switch in ("on", "off"):
                ways[f"{place}, {switch}"] = ([f"SET invisible_join = {switch}"], how)
        self.table("Invisible join", "invisible", ways)
        self.session.run("SET invisible_join = on")

    def split(self):
        names = ["compile", "link", "builds", "probes", "filters, sums", "rest"]
        table = Table(f"Where the time goes, SSB scale {self.scale}, columns not on the GPU, ms", ("query", -5), ("total", 7),
                      *((name, 7) for name in names))
        rates = {row["way"]: float(row["gb_per_s"]) * 1e6 for row in rows_of(self.build, "transfer_bench", "--pieces", str(PIECE))}
        shares = {}
        for query, sql in self.statements.items():
            _, ms, _ = self.cold(sql)
            self.session.forget_columns()
            sections = self.sections(sql)
            compile_ms = median([self.session.run(sql).compile_ms for _ in range(self.runs)])
            link = sum(s.transferred for s in sections) / rates["stream_total"]
            fact = max(sections, key=lambda s: s.rows_in)
            builds = sum(s.kernel_ms for s in sections if s is not fact)
            probes = sum(fact.joined_ms)
            # Kernels run beside the copies of the tablets after them: what of them is not hidden is in the rest.
            parts = [compile_ms, link, builds, probes, max(0.0, fact.kernel_ms - probes)]
            parts.append(ms - compile_ms - max(link, sum(parts[2:])))
            table.row(query, ms, *parts)
            shares[query] = dict(zip(names, parts))
            self.record(part="split", query=query, way=" ".join(f"{p:.3f}" for p in parts), ms=ms)
        plot.bars(os.path.join(self.out, "split.svg"), "Where the time goes, ms", shares)

    def sorted(self):
        table = Table(f"The fact table sorted by a foreign key, stored as ratio, SSB scale {self.scale}", ("query", -5), ("sorted by", -12),
                      ("MB", 8), ("sorted MB", 9), ("resident", 8), ("sorted", 8), ("cold", 8), ("sorted", 8))
        base = self.session
        database = base.command[-1]
        sorted_database = database + ".sorted"
        if not os.path.isdir(sorted_database):
            script = ["SET compression = ratio;", f"VACUUM {FACT};"]
            script += [f"CREATE TABLE {FACT}_{key} WITH (cluster_by = {key}) AS SELECT * FROM {FACT};" for key in set(SORTED.values())]
            make_database(self.build, sorted_database, script, like=database)
        self.session = Session(self.build, sorted_database, "gpu", self.threads, 600, self.gpu_options)
        for query, sql in self.statements.items():
            key = SORTED[query[:2]]
            other = re.sub(rf"\b{FACT}\b", f"{FACT}_{key}", sql)
            row = [query, key]
            for statement in (sql, other):
                row.append(max(self.sections(statement), key=lambda s: s.rows_in).bytes / 1e6)
            for way in (self.resident, self.cold):
                answers = [way(statement) for statement in (sql, other)]
                if not same(answers[0][0], answers[1][0]):
                    raise Failed(f"{query}: other rows over the sorted table")
                row += [ms for _, ms, _ in answers]
                for name, (_, ms, kernel_ms) in zip(("as loaded", "sorted"), answers):
                    self.record(part="sorted", query=query, way=name, ms=ms, kernel_ms=kernel_ms)
            table.row(*row)
        self.session.close()
        self.session = base

    def machine(self):
        """Its rates, and what is left of calibrating queries once these are taken off."""
        rates = {row["way"]: float(row["gb_per_s"]) * 1e6 for row in rows_of(self.build, "transfer_bench", "--pieces", str(PIECE))}
        machine = Machine(rates["device"], rates["stream_total"])
        one = self.measured("SELECT count(*) FROM date WHERE d_year <> 1995")
        two = self.measured("SELECT count(*) FROM date, supplier WHERE d_datekey = s_suppkey + 19920000 AND d_year <> 1995")
        machine.start = one[0]
        machine.section = max(0.0, two[0] - one[0]) / max(1, len(two[2]) - len(one[2]))
        columns = f"SELECT sum(lo_tax), sum(lo_supplycost), sum(lo_ordtotalprice) FROM {FACT}"
        ms, _, sections = self.measured(columns)
        machine.bind = max(0.0, ms - machine.resident(sections)) / sum(s.chunks for s in sections)
        machine.chunk = self.left_of_cold(machine, columns) / self.chunks
        few = f"SELECT count(*), sum(lo_ordtotalprice), sum(lo_supplycost), sum(lo_tax) FROM {FACT} WHERE lo_quantity = 7 AND lo_discount = 3"
        machine.place = self.left_of_cold(machine, few) / max(1, self.in_place)
        for name, sql in (("probe", f"SELECT count(*) FROM {FACT}, supplier WHERE lo_suppkey = s_suppkey"),
                          ("group", f"SELECT lo_discount, sum(lo_revenue) FROM {FACT} GROUP BY lo_discount")):
            _, kernel_ms, sections = self.measured(sql)
            rows = max(section.rows_in for section in sections)
            setattr(machine, name, max(0.0, kernel_ms - machine.kernels(sections)) / rows)
        print(f"memory {machine.memory * 1e-6:,.0f} GB/s, link {machine.link * 1e-6:.1f} GB/s, start {machine.start:.3f} ms, section "
              f"{machine.section:.3f} ms, bind {machine.bind * 1e3:.2f} us, chunk {machine.chunk * 1e3:.2f} us, "
              f"in place {1e-6 / max(machine.place, 1e-12):.1f} GB/s, probe {machine.probe * 1e6:.4f} ns, group {machine.group * 1e6:.4f} ns")
        return machine

    def left_of_cold(self, machine, sql):
        """What the model, so far, leaves of a query's time without columns on the GPU; its chunks and bytes in place."""
        _, ms, _ = self.cold(sql)
        self.session.forget_columns()
        sections = self.sections(sql)
        self.chunks, self.in_place = sum(s.chunks for s in sections), sum(s.in_place for s in sections)
        return max(0.0, ms - machine.cold(sections))

    def measured(self, sql):
        """(ms, kernel ms, sections), columns on the GPU."""
        _, ms, kernel_ms = self.resident(sql)
        return ms, kernel_ms, self.sections(sql)

    def sections(self, sql, probed=None):
        sections = Analysis(self.session, sql).sections
        for section in sections:
            section.probed = section.rows_in if probed is None else probed
        return sections

    def model(self):
        machine = self.machine()
        table = Table(f"The model, SSB scale {self.scale}, ms", ("query", -5), ("resident", 8), ("predicted", 9), ("error %", 7),
                      ("cold", 8), ("predicted", 9), ("error %", 7), ("link", 8), ("kernels", 8))
        errors = {"resident": [], "cold": []}
        sections_of, groups = {}, {}
        for query, sql in self.statements.items():
            _, resident_ms, kernel_ms = self.resident(sql)
            _, cold_ms, _ = self.cold(sql)
            probed = int(self.session.run(count_of_probed(sql)).rows[0])
            self.session.forget_columns()
            sections = sections_of[query] = self.sections(sql, probed)
            predicted = machine.resident(sections), machine.cold(sections)
            for way, ms, model_ms in zip(errors, (resident_ms, cold_ms), predicted):
                errors[way].append(model_ms / ms - 1)
                self.record(part="model", query=query, way=way, ms=ms, kernel_ms=kernel_ms, predicted_ms=model_ms,
                            bytes=int(sum(s.transferred for s in sections)))
            table.row(query, resident_ms, predicted[0], 100 * errors["resident"][-1], cold_ms, predicted[1], 100 * errors["cold"][-1],
                      sum(s.transferred for s in sections) / machine.link, machine.kernels(sections))
            groups[query] = {"resident": resident_ms, "predicted, resident": predicted[0], "cold": cold_ms,
                             "predicted, cold": predicted[1]}
        for way, all_errors in errors.items():
            print(f"{way}: error {100 * sum(map(abs, all_errors)) / len(all_errors):.1f} % on average, median "
                  f"{100 * median([abs(e) for e in all_errors]):.1f} %")
        plot.bars(os.path.join(self.out, "model.svg"), "Measured and predicted, ms", groups)
        what_if = Table("What if, predicted sum of 13 queries, ms", ("machine", -24), ("resident", 9), ("cold", 9))
        for name, memory, link in (("this one", 1, 1), ("link twice as fast", 1, 2), ("memory twice as fast", 2, 1), ("both", 2, 2)):
            other = machine.with_rates(memory, link)
            what_if.row(name, sum(map(other.resident, sections_of.values())), sum(map(other.cold, sections_of.values())))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    os.chdir(ROOT)
    parts = environment("PARTS", "transfer invisible split sorted model").split()
    for part in parts:
        if part not in ("transfer", "invisible", "split", "sorted", "model"):
            sys.exit(f"bench/model.py: PARTS has transfer, invisible, split, sorted and model, not '{part}'")
    try:
        bench = Model(os.path.abspath(sys.argv[1]))
        for part in parts:
            load = OtherLoad()
            getattr(bench, part)()
            print("\n" + load.text())
    except Failed as failed:
        sys.exit(f"bench/model.py: {failed}")


if __name__ == "__main__":
    main()
