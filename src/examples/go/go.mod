module sqlock.example/sqlock

go 1.19
