#!/usr/bin/env python3
"""A script as pg_dump of PostgreSQL prints it is loaded: as a file, by a pipe, and within one transaction.

    tests/session/pg_dump_test.py BUILD_DIR [NAME...]

Ends with "N passed, N failed".
"""

import os

from command_tests import ask, check, equal, main, run

DUMP = r"""--
-- PostgreSQL database dump
--

-- Dumped from database version 15.4
-- Dumped by pg_dump version 15.4

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: sales; Type: SCHEMA; Schema: -; Owner: app
--

CREATE SCHEMA sales;


ALTER SCHEMA sales OWNER TO app;

--
-- Name: SCHEMA sales; Type: COMMENT; Schema: -; Owner: app
--

COMMENT ON SCHEMA sales IS 'what is sold';


--
-- Name: mood; Type: TYPE; Schema: public; Owner: app
--

CREATE TYPE public.mood AS ENUM (
    'happy',
    'sad'
);


ALTER TYPE public.mood OWNER TO app;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: people; Type: TABLE; Schema: public; Owner: app
--

CREATE TABLE public.people (
    id integer NOT NULL,
    name character varying(40) NOT NULL,
    born date,
    balance numeric(10,2) DEFAULT 0.00 NOT NULL,
    active boolean DEFAULT true NOT NULL,
    state public.mood DEFAULT 'happy'::public.mood,
    note text DEFAULT ''::text,
    seen timestamp with time zone DEFAULT now(),
    CONSTRAINT people_balance_check CHECK ((balance >= (0)::numeric))
);


ALTER TABLE public.people OWNER TO app;

--
-- Name: TABLE people; Type: COMMENT; Schema: public; Owner: app
--

COMMENT ON TABLE public.people IS 'who''s there';


--
-- Name: COLUMN people.note; Type: COMMENT; Schema: public; Owner: app
--

COMMENT ON COLUMN public.people.note IS 'anything';


--
-- Name: people_id_seq; Type: SEQUENCE; Schema: public; Owner: app
--

CREATE SEQUENCE public.people_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER TABLE public.people_id_seq OWNER TO app;

--
-- Name: people_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: app
--

ALTER SEQUENCE public.people_id_seq OWNED BY public.people.id;


--
-- Name: orders; Type: TABLE; Schema: sales; Owner: app
--

CREATE TABLE sales.orders (
    id bigint NOT NULL,
    person integer NOT NULL,
    item text
);


ALTER TABLE sales.orders OWNER TO app;

--
-- Name: orders_id_seq; Type: SEQUENCE; Schema: sales; Owner: app
--

ALTER TABLE sales.orders ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sales.orders_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: rich; Type: VIEW; Schema: public; Owner: app
--

CREATE VIEW public.rich AS
 SELECT people.id,
    people.name
   FROM public.people
  WHERE (people.balance > (100)::numeric);


ALTER TABLE public.rich OWNER TO app;

--
-- Name: people id; Type: DEFAULT; Schema: public; Owner: app
--

ALTER TABLE ONLY public.people ALTER COLUMN id SET DEFAULT nextval('public.people_id_seq'::regclass);


--
-- Data for Name: people; Type: TABLE DATA; Schema: public; Owner: app
--

COPY public.people (id, name, born, balance, active, state, note, seen) FROM stdin;
1	Ada	1815-12-10	100.50	t	happy	a\ttab and a \\ backslash	2024-01-01 00:00:00+00
2	Bob	\N	0.00	f	sad		\N
7	Eve	2000-02-29	20.25	t	\N	two\nlines	2024-02-29 12:30:00.5+02
\.


--
-- Data for Name: orders; Type: TABLE DATA; Schema: sales; Owner: app
--

COPY sales.orders (id, person, item) FROM stdin;
1	1	engine
2	7	key
\.


--
-- Name: people_id_seq; Type: SEQUENCE SET; Schema: public; Owner: app
--

SELECT pg_catalog.setval('public.people_id_seq', 7, true);


--
-- Name: orders_id_seq; Type: SEQUENCE SET; Schema: sales; Owner: app
--

SELECT pg_catalog.setval('sales.orders_id_seq', 2, true);


--
-- Name: people people_name_key; Type: CONSTRAINT; Schema: public; Owner: app
--

ALTER TABLE ONLY public.people
    ADD CONSTRAINT people_name_key UNIQUE (name);


--
-- Name: people people_pkey; Type: CONSTRAINT; Schema: public; Owner: app
--

ALTER TABLE ONLY public.people
    ADD CONSTRAINT people_pkey PRIMARY KEY (id);


--
-- Name: orders orders_pkey; Type: CONSTRAINT; Schema: sales; Owner: app
--

ALTER TABLE ONLY sales.orders
    ADD CONSTRAINT orders_pkey PRIMARY KEY (id);


--
-- Name: people_born_idx; Type: INDEX; Schema: public; Owner: app
--

CREATE INDEX people_born_idx ON public.people USING btree (born);


--
-- Name: orders orders_person_fkey; Type: FK CONSTRAINT; Schema: sales; Owner: app
--

ALTER TABLE ONLY sales.orders
    ADD CONSTRAINT orders_person_fkey FOREIGN KEY (person) REFERENCES public.people(id) ON DELETE CASCADE;


--
-- Name: SCHEMA public; Type: ACL; Schema: -; Owner: app
--

REVOKE USAGE ON SCHEMA public FROM PUBLIC;
GRANT ALL ON SCHEMA public TO PUBLIC;


--
-- Name: TABLE people; Type: ACL; Schema: public; Owner: app
--

GRANT SELECT ON TABLE public.people TO reader;


--
-- PostgreSQL database dump complete
--

"""


def check_loaded():
    equal(ask("SELECT id, name, born, balance, active, state FROM people ORDER BY id"),
          "1,Ada,1815-12-10,100.50,true,happy\n2,Bob,,0.00,false,sad\n7,Eve,2000-02-29,20.25,true,\n")
    equal(ask("SELECT id, replace(replace(note, chr(9), '<tab>'), chr(10), '<line>'), seen IS NULL FROM people ORDER BY id"),
          "1,a<tab>tab and a \\ backslash,false\n2,\"\",true\n7,two<line>lines,false\n")
    equal(ask("SELECT o.id, p.name, o.item FROM sales.orders o JOIN public.people p ON p.id = o.person ORDER BY 1"),
          "1,Ada,engine\n2,Eve,key\n")
    equal(ask("SELECT * FROM rich"), "1,Ada\n")
    # Numbers go on where they were.
    equal(ask("INSERT INTO people (name) VALUES ('New') RETURNING id, state, balance"), "8,happy,0.00\n")
    equal(ask("INSERT INTO sales.orders (person, item) VALUES (8, 'pen') RETURNING id"), "3\n")
    # Keys hold, and what goes with them.
    for wrong, message in (("INSERT INTO people (name) VALUES ('Ada')", "people_name_key"),
                           ("INSERT INTO people (id, name) VALUES (1, 'x')", "people"),
                           ("INSERT INTO people (name, balance) VALUES ('x', -1)", "people_balance_check"),
                           ("INSERT INTO sales.orders (person) VALUES (99)", "orders_person_fkey"),
                           ("INSERT INTO sales.orders VALUES (9, 1, 'x')", "GENERATED ALWAYS"),
                           ("DROP SEQUENCE people_id_seq", "people")):
        check(message in run("d", "-c", wrong, status=1).stderr, wrong, run("d", "-c", wrong, status=1).stderr)
    equal(ask("DELETE FROM people WHERE id = 7; SELECT count(*) FROM sales.orders"), "2\n")
    equal(ask("SELECT obj_description('people'::regclass, 'pg_class'), col_description('people'::regclass, 7)"),
          "who's there,anything\n")
    equal(ask("SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = 'sales'"), "what is sold\n")


def test_as_a_file():
    with open("dump.sql", "w", encoding="utf-8") as file:
        file.write(DUMP)
    run("d", "-f", "dump.sql")
    check_loaded()


def test_by_a_pipe():
    run("d", input=DUMP)
    check_loaded()


def test_in_one_transaction():
    run("d", input="BEGIN;\n" + DUMP + "COMMIT;\n")
    check_loaded()


def test_what_is_exported_of_it_is_the_same():
    run("d", input=DUMP)
    run("d", "-c", "EXPORT DATABASE 'out'")
    os.rename("d", "first")
    run("d", "-c", "IMPORT DATABASE 'out'")
    equal(run("d", "-c", ".schema").stdout, run("first", "-c", ".schema").stdout)
    check_loaded()


main(globals())
