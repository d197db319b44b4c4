"""What people look at: a room per page, and the kit that all pages are made with."""
