-- What an analyst asks beside star queries: one table, which sql_gen writes and describes.

CREATE TABLE events (
  event   INTEGER NOT NULL PRIMARY KEY,
  visit   INTEGER NOT NULL,
  session INTEGER NOT NULL,
  shop    INTEGER NOT NULL,
  kind    INTEGER NOT NULL,
  visitor INTEGER NOT NULL,
  amount  DECIMAL(10,2) NOT NULL,
  score   DOUBLE PRECISION NOT NULL,
  day     DATE NOT NULL,
  url     TEXT NOT NULL
);
