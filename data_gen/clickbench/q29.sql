-- Hosts of referers.
SELECT regexp_replace(referer, '^https?://(?:www[.])?([^/]+)/.*$', '\1') AS host, avg(length(referer)) AS
  letters, count(*) AS views, min(referer)
FROM hits
WHERE referer <> ''
GROUP BY host
HAVING count(*) > 1000
ORDER BY letters DESC, host LIMIT 25;
