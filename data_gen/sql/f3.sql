SELECT max(regexp_extract(url, '@(host[0-9]+)', 1)) FROM events;
