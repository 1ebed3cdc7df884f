// What server_test.py lets pgjdbc do: java -cp postgresql.jar jdbc_client.java URL. One line on standard output for each thing
// that it has seen.

import java.io.StringReader;
import java.io.StringWriter;
import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;

class JdbcClient {
  static void say(Object... words) {
    StringBuilder line = new StringBuilder();
    for (Object word : words) line.append(line.length() > 0 ? " " : "").append(word);
    System.out.println(line);
  }

  static void types(Connection c) throws SQLException {
    try (PreparedStatement s = c.prepareStatement("INSERT INTO every VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
      for (int i = 1; i <= 20; ++i) {  // (from the fifth time on values go in binary form)
        s.setInt(1, i);
        s.setLong(2, 10_000_000_000L * i);
        s.setBigDecimal(3, new BigDecimal("1.25").multiply(new BigDecimal(i)));
        s.setDouble(4, i / 2.0);
        s.setBoolean(5, i % 2 == 0);
        s.setString(6, i % 3 == 0 ? null : "text " + i);
        s.setDate(7, java.sql.Date.valueOf("2026-01-" + (i < 10 ? "0" : "") + i));
        s.setTimestamp(8, java.sql.Timestamp.valueOf("2026-02-03 04:05:06.789"));
        s.setBytes(9, new byte[] {0, (byte) i, (byte) 255});
        s.executeUpdate();
      }
    }
    try (PreparedStatement s = c.prepareStatement("SELECT * FROM every WHERE id = ?")) {
      for (int id : new int[] {1, 2, 3, 4, 5, 6, 7, 18}) {
        s.setInt(1, id);
        try (ResultSet r = s.executeQuery()) {
          while (r.next()) {
            say(r.getInt("id"), r.getLong(2), r.getBigDecimal(3), r.getDouble(4), r.getBoolean(5), r.getString(6), r.getDate(7),
                r.getTimestamp(8), r.getBytes(9)[1]);
          }
        }
      }
      ResultSetMetaData m = s.getMetaData();
      for (int i = 1; i <= m.getColumnCount(); ++i) say(m.getColumnName(i), m.getColumnTypeName(i), m.getPrecision(i), m.getScale(i));
    }
  }

  static void batches(Connection c) throws SQLException {
    c.setAutoCommit(false);
    try (PreparedStatement s = c.prepareStatement("INSERT INTO numbers VALUES (?)")) {
      for (int i = 0; i < 1000; ++i) {
        s.setInt(1, i);
        s.addBatch();
      }
      say("batch", s.executeBatch().length);
    }
    c.rollback();
    try (Statement s = c.createStatement()) {
      s.executeUpdate("INSERT INTO numbers SELECT x FROM range(1000) AS r(x)");
      c.commit();
      s.setFetchSize(64);  // a portal, some rows at a time
      long sum = 0, rows = 0;
      try (ResultSet r = s.executeQuery("SELECT a FROM numbers ORDER BY a")) {
        for (; r.next(); ++rows) sum += r.getInt(1);
      }
      say("fetched", rows, sum);
      try {
        s.executeQuery("SELECT nothing FROM numbers");
      } catch (SQLException error) {
        say("error", error.getSQLState());
      }
      try {
        s.executeQuery("SELECT 1");
      } catch (SQLException error) {
        say("error", error.getSQLState());
      }
      c.rollback();
    }
    c.setAutoCommit(true);
  }

  static void metadata(Connection c) throws SQLException {
    DatabaseMetaData m = c.getMetaData();
    say(m.getDatabaseProductName(), m.getDatabaseMajorVersion());
    try (ResultSet r = m.getTables(null, null, "%e%", new String[] {"TABLE"})) {
      while (r.next()) say("table", r.getString("TABLE_SCHEM"), r.getString("TABLE_NAME"), r.getString("TABLE_TYPE"));
    }
    try (ResultSet r = m.getColumns(null, null, "every", "%")) {
      while (r.next()) {
        say("column", r.getString("COLUMN_NAME"), r.getString("TYPE_NAME"), r.getInt("DATA_TYPE"), r.getInt("COLUMN_SIZE"),
            r.getString("IS_NULLABLE"), r.getInt("ORDINAL_POSITION"));
      }
    }
  }

  static void copies(Connection c) throws Exception {
    CopyManager copy = c.unwrap(PGConnection.class).getCopyAPI();
    say("in", copy.copyIn("COPY numbers FROM STDIN", new StringReader("1000\n1001\n")));
    StringWriter out = new StringWriter();
    say("out", copy.copyOut("COPY (SELECT a FROM numbers WHERE a >= 1000 ORDER BY a) TO STDOUT", out), out.toString().replace('\n', ','));
  }

  static void cancels(Connection c) throws Exception {
    try (Statement s = c.createStatement()) {
      s.setQueryTimeout(1);
      s.executeQuery("SELECT count(*) FROM generate_series(1, 100000000000) a(x) WHERE x % 7 = 8");
      say("not cancelled");
    } catch (SQLException error) {
      say("cancelled", error.getSQLState());
    }
    say("valid", c.isValid(5));
  }

  public static void main(String[] arguments) throws Exception {
    try (Connection c = DriverManager.getConnection(arguments[0])) {
      types(c);
      batches(c);
      metadata(c);
      copies(c);
      cancels(c);
    }
  }
}
